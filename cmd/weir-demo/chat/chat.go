// Package chat shows how a cascade always answers: customers of a shop ask its assistant
// (examples/chat) through a real sidecar, while the two providers behind it are well,
// throttle, and break. Everything is real HTTP on loopback and in real time; the
// providers are simulated by package llmsim.
//
// # The acts
//
//	healthy    the primary model takes 1,200 requests a minute
//	throttled  it takes 40 a minute, and says so only when it is asked
//	down       it answers every request with 503
//	dark       so does the model elsewhere
//	recovery   both are well again; the act ends when the primary has all calls back
//
// # What is asked
//
// Of ten calls three are the same few questions again and again, five are about an
// order of the customer's own, which the cache has never seen but a static answer may be
// found for, and two are questions that nobody has foreseen. Four of five want a stream.
package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Config says how the demonstration runs. What is 0 has a default.
type Config struct {
	Act  time.Duration // of each act; 0 means 5s. The last takes up to three times as long
	Rate int           // calls a second; 0 means 12
	Acts []string      // the names of those that are played; nil means all

	Out    io.Writer
	JSON   bool // print an Act for each act, and nothing else
	Colour bool
	Stay   bool // go on serving after the last act until the context ends

	// Sidecar starts weir with examples/chat before two providers; required.
	Sidecar func(primary, elsewhere string) (*Sidecar, error)
}

// A Sidecar is a running weir.
type Sidecar struct {
	URL   string // where SDKs are pointed at, as http://127.0.0.1:1234
	Close func() // ends it, and waits for its end
}

// WithDefaults is c with its defaults filled in.
func (c Config) WithDefaults() Config {
	c.Act = cmp.Or(c.Act, 5*time.Second)
	c.Rate = cmp.Or(c.Rate, 12)
	return c
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	if c.Act < time.Second || c.Act > time.Minute {
		errs = append(errs, fmt.Errorf("-act %v: must be from 1s to 1m", c.Act))
	}
	if c.Rate < 2 || c.Rate > 20 {
		errs = append(errs, fmt.Errorf("-rate %d: must be from 2 to 20", c.Rate))
	}
	return errors.Join(errs...)
}

// Run runs the acts and prints each. If ctx ends before they do, it stops and returns
// the cause. A call that was not answered is ErrUnanswered. With Stay, once all acts are
// over, the end of ctx is how Run is meant to end.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.WithDefaults()
	s, err := newStage(c)
	if err != nil {
		return err
	}
	defer s.close()
	all, err := s.run(ctx)
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.Answered < a.Calls {
			return ErrUnanswered
		}
	}
	if c.Stay && !c.JSON {
		_, err = fmt.Fprintf(c.Out, invitation, s.sidecar.URL)
		<-ctx.Done()
	}
	return err
}

// run plays the acts one by one, and shows each.
func (s *stage) run(ctx context.Context) (all []Act, err error) {
	p := printer{Config: s.Config}
	p.title()
	plays := chosen(s.Acts)
	for i, play := range plays {
		p.begin(fmt.Sprintf("%d/%d", i+1, len(plays)), play)
		a, err := s.perform(ctx, play, p.mark)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
		if s.JSON {
			if err := json.NewEncoder(s.Out).Encode(a); err != nil {
				return nil, err
			}
		}
		p.end(a)
	}
	p.summary(all)
	return all, nil
}

const invitation = `
weir and its practice providers are still there. Ask them yourself:

  curl -i %s/chat/v1/chat/completions \
    -H 'Content-Type: application/json' -H 'X-User: you' \
    -d '{"model": "gpt-5-mini", "messages": [{"role": "user", "content": "hello"}]}'

Ctrl-C ends it.
`

// ErrUnanswered means that a call got no answer, or none that its SDK understands.
var ErrUnanswered = errors.New("not every call was answered")
