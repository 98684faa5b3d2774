// Package chat shows how a cascade always answers. Customers of a shop ask its assistant (examples/chat) through a real
// sidecar, while the two providers behind it work, throttle, and fail. Calls are real HTTP on loopback in real time. Package
// llmsim simulates the providers.
//
// # The acts
//
//	healthy    the primary model allows 1,200 requests a minute
//	throttled  it allows 40 a minute, and reports this only in its responses
//	down       it responds to every request with 503
//	dark       the second model does, too
//	recovery   both work again; the act ends when the primary answers all calls
//
// # The questions
//
// Of ten calls, three ask the same few questions. Five are about the customer's order: the cache has no answer, but a static
// answer may match. Two are unforeseen questions. Four of five calls request a stream.
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

// Config configures the demonstration. Zero fields have defaults.
type Config struct {
	Act  time.Duration // length of each act; 0 means 5s. The last act takes up to three times as long
	Rate int           // calls a second; 0 means 12
	Acts []string      // names of the acts to run; nil means all

	Out    io.Writer
	JSON   bool // print one Act as JSON per act, and nothing else
	Colour bool
	Stay   bool // serve after the last act until the context ends

	// Sidecar starts weir with examples/chat and two providers. It is required.
	Sidecar func(primary, elsewhere string) (*Sidecar, error)
}

// A Sidecar is a running weir.
type Sidecar struct {
	URL   string // base URL for SDKs, such as http://127.0.0.1:1234
	Close func() // stops it and waits for its end
}

// WithDefaults returns c with defaults for zero fields.
func (c Config) WithDefaults() Config {
	c.Act = cmp.Or(c.Act, 5*time.Second)
	c.Rate = cmp.Or(c.Rate, 12)
	return c
}

// Validate returns all mistakes, joined.
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

// Run runs the acts and prints each. If ctx ends earlier, Run stops and returns the cause. It returns ErrUnanswered if a call
// got no answer. With Stay, ctx ends Run regularly after the acts.
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

// run runs the acts one after the other and prints each.
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
weir and the simulated providers are still running. Try them yourself:

  curl -i %s/chat/v1/chat/completions \
    -H 'Content-Type: application/json' -H 'X-User: you' \
    -d '{"model": "gpt-5-mini", "messages": [{"role": "user", "content": "hello"}]}'

Press Ctrl-C to stop.
`

// ErrUnanswered reports that a call got no answer, or an answer that the SDK cannot parse.
var ErrUnanswered = errors.New("not every call was answered")
