// Package demo shows what weir is for: the same callers ask the same upstream, once
// directly with the retries that SDKs make, and once through weir.
//
// Two stories are played in virtual time, so that they come out the same on any machine,
// however busy it is: an upstream that stands still for a while, and a tenant who asks for
// ten times as much as before. The upstream has a capacity and a queue, and goes on
// working for callers who have left. The third is live: real HTTP on loopback, through the
// sidecar.
//
// What weir is told stands in weir.yaml, which is read as weir serve reads it.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
)

// Config says how the demo runs.
type Config struct {
	Live time.Duration // how long real calls are made; 0 means none
	Seed uint64        // decides when calls come

	Out    io.Writer
	JSON   bool // print a Result and nothing else
	Colour bool
	Stay   bool // go on serving after the live part until the context ends

	Version string
	Events  weir.Events
	Metrics http.Handler         // nil means that there are none
	Watch   func(*weir.Upstream) // told of the upstream; may be nil
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	if c.Live != 0 && (c.Live < 6*time.Second || c.Live > 10*time.Minute) {
		return fmt.Errorf("-live %v: must be from 6s to 10m, or 0 for no live part", c.Live)
	}
	return nil
}

// A Result is how the stories went, by their names: "stall", "flood" and "live".
type Result map[string]Ways

// Ways are both ways in which a story is played.
type Ways struct {
	Direct *Score `json:"direct"`
	Weir   *Score `json:"weir"`
}

// Run runs the demo and prints it. If ctx ends before the run does, it stops and
// returns the cause. With Stay, once all is printed, the end of ctx is how Run is meant
// to end.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	r := make(Result)
	if err := c.virtual(ctx, r); err != nil {
		return err
	}
	if c.Live > 0 {
		if err := c.live(ctx, r); err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(r)
	}
	return nil
}

// virtual plays and prints the stories that are played in virtual time.
func (c Config) virtual(ctx context.Context, r Result) error {
	c.say(intro)
	for _, s := range stories {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w, err := s.both(c.Seed)
		if err != nil {
			return err
		}
		r[s.name] = w
		c.say(s.picture(w.Direct, w.Weir, palette(c.Colour)) + s.table(w.Direct, w.Weir))
	}
	c.say(legend(palette(c.Colour)) + "\nWhat weir is told:\n\n" + string(file))
	return nil
}

const intro = `
An upstream does 300 calls a second, and four tenants ask it for 240. It has a
queue, and works for callers who have left, too. Clients wait a second for an
answer, and retry as SDKs do: three attempts, jitter, Retry-After is heeded.
A minute each, in virtual time.
`

// both plays a story both ways.
func (s story) both(seed uint64) (Ways, error) {
	p, err := policy()
	if err != nil {
		return Ways{}, err
	}
	direct, err1 := s.play(seed, nil)
	through, err2 := s.play(seed, p)
	if err := errors.Join(err1, err2); err != nil {
		return Ways{}, err
	}
	return Ways{direct.score(), through.score()}, nil
}

// say prints what people read.
func (c Config) say(text string) {
	if !c.JSON {
		_, _ = io.WriteString(c.Out, text)
	}
}
