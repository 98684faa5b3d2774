// Package demo shows what weir is for: the same load goes to two equal practice
// upstreams, to one directly with the retries that people write, to the other
// through a real sidecar. Everything is real HTTP on loopback and in real time.
//
// # The load
//
// Calls are due at instants that a seed decides, the same for both ways: 40% of
// the upstream's rate come one by one, and every 900 ms a batch of 0.4 s worth
// comes at once; 84% of the limit on average. The upstream takes 150 ms worth at
// once. A call's time is counted from when it was due, not from when a worker
// came to it. In the middle fifth of the run every request fails.
//
// So all that the direct way loses outside the outage it loses to batches, which
// would go through if they took their turns; and in the outage weir can save no
// call, only the attempts.
//
// # What is counted
//
// See Score. Attempts, refusals and failures are counted by the upstreams, calls
// by those who make them. A call that weir refuses counts as one that did not
// succeed.
package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
)

// Config says how the demo runs. Durations and counts that are 0 have defaults.
type Config struct {
	For     time.Duration // how long calls are made; 0 means 20s
	Rate    int           // requests a second that an upstream bears; 0 means 200
	Workers int           // calls under way at once, each way; 0 means 128
	Seed    uint64        // of the times at which calls are due

	Out    io.Writer
	JSON   bool // print a Result and nothing else
	Draw   bool // Out can be drawn on: a terminal that knows ANSI sequences
	Colour bool
	Stay   bool // go on serving after the table until the context ends

	Version string
	Events  weir.Events
	Metrics http.Handler         // nil means that there are none
	Watch   func(*weir.Upstream) // told of the upstream; may be nil
}

// WithDefaults is c with its defaults filled in.
func (c Config) WithDefaults() Config {
	c.For = cmp.Or(c.For, 20*time.Second)
	c.Rate = cmp.Or(c.Rate, 200)
	c.Workers = cmp.Or(c.Workers, 128)
	return c
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	if c.For < 4*time.Second || c.For > 10*time.Minute {
		errs = append(errs, fmt.Errorf("-for %v: must be from 4s to 10m", c.For))
	}
	if c.Rate < 20 || c.Rate > 2000 {
		errs = append(errs, fmt.Errorf("-rate %d: must be from 20 to 2000", c.Rate))
	}
	if c.Workers < 1 || c.Workers > 10_000 {
		errs = append(errs, fmt.Errorf("-workers %d: must be from 1 to 10000", c.Workers))
	}
	return errors.Join(errs...)
}

// outage is the middle fifth of the run.
func (c Config) outage() (from, to time.Duration) { return c.For * 2 / 5, c.For * 3 / 5 }

// Run runs the demo and prints it. If ctx ends before the run does, it stops and
// returns the cause, having printed no result. With Stay, once the table is
// printed, the end of ctx is how Run is meant to end.
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
	if err := s.perform(ctx); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(s.result())
	}
	if _, err := io.WriteString(c.Out, table(s.result())); err != nil || !c.Stay {
		return err
	}
	return s.stay(ctx)
}

// perform sends the load both ways at once, and shows it.
func (s *stage) perform(ctx context.Context) error {
	due := schedule(rand.New(rand.NewPCG(s.config.Seed, 0)), s.config.Rate, s.config.For)
	done := make(chan struct{})
	var show, load sync.WaitGroup
	if !s.config.JSON {
		show.Go(func() { s.show(ctx, done) })
	}
	for _, w := range s.ways {
		load.Go(func() { w.work(ctx, s.start, due, s.config.Workers) })
	}
	load.Wait()
	close(done)
	show.Wait()
	return context.Cause(ctx)
}
