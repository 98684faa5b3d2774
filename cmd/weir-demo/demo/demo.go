// Package demo shows the purpose of weir. The same callers call the same upstream twice: directly with the retries of SDKs, and
// through weir.
//
// Two stories run in virtual time, so that they have the same result on any machine: an upstream that stalls for a while, and a
// tenant that sends ten times as many calls as before. The upstream has a capacity and a queue, and works also for callers that
// have disconnected. The third story is live: real HTTP on loopback, through the sidecar.
//
// weir's configuration is weir.yaml, read as weir serve reads it.
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
	"github.com/seed1158cd35/weir/internal/play"
)

// Config configures the demo.
type Config struct {
	Live time.Duration // length of the live part; 0 means none
	Seed uint64        // seed of the random call times

	Out    io.Writer
	JSON   bool // print only a Result as JSON
	Colour bool
	Stay   bool // serve after the live part until the context ends

	Version string
	Events  weir.Events
	Metrics http.Handler         // nil means none
	Watch   func(*weir.Upstream) // receives the upstream; may be nil
}

// Validate returns all mistakes.
func (c Config) Validate() error {
	if c.Live != 0 && (c.Live < 6*time.Second || c.Live > 10*time.Minute) {
		return fmt.Errorf("-live %v: must be from 6s to 10m, or 0 for no live part", c.Live)
	}
	return nil
}

// A Result has the scores of the stories "stall", "flood" and "live".
type Result map[string]Ways

// Ways are the scores of a story with and without weir.
type Ways struct {
	Direct *play.Score `json:"direct"`
	Weir   *play.Score `json:"weir"`
}

// Run runs the demo and prints it. If ctx ends earlier, Run stops and returns the cause. With Stay, ctx ends Run regularly
// after the output.
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

// virtual runs and prints the stories in virtual time.
func (c Config) virtual(ctx context.Context, r Result) error {
	c.say(intro)
	for i := range stories {
		s := &stories[i]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w, err := both(ctx, s, c.Seed)
		if err != nil {
			return err
		}
		r[s.Name] = w
		c.say(s.Picture(w.Direct, w.Weir, play.Palette(c.Colour)) + s.Table(w.Direct, w.Weir))
	}
	c.say(play.Legend(play.Palette(c.Colour)) + "\nweir's configuration:\n\n" + string(file))
	return nil
}

const intro = `
An upstream handles 300 calls per second, and four tenants send 240. It has a
queue, and also works on requests whose callers have left. Clients wait a second
for a response, and retry as SDKs do: three attempts, jitter, and Retry-After.
Each story takes a minute of virtual time.
`

// both runs a story with and without weir.
func both(ctx context.Context, s *play.Story, seed uint64) (Ways, error) {
	p, err := policy()
	if err != nil {
		return Ways{}, err
	}
	direct, err1 := s.Play(ctx, seed, nil, nil)
	through, err2 := s.Play(ctx, seed, p, nil)
	if err := errors.Join(err1, err2); err != nil {
		return Ways{}, err
	}
	return Ways{direct, through}, nil
}

func (c Config) say(text string) {
	if !c.JSON {
		_, _ = io.WriteString(c.Out, text)
	}
}
