package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sim"
)

// calls makes calls at the instants, each in its own goroutine, and returns the result and the time of each.
func calls(t *testing.T, w *sim.World, u *sim.Upstream, timeout time.Duration, at ...time.Duration) []string {
	got := make([]string, len(at))
	for i, start := range at {
		w.Go(func() {
			sleep(w, start)
			ctx, cancel := w.Clock().WithTimeout(background, timeout, errLate)
			defer cancel()
			n, err := u.Call(ctx)
			got[i] = fmt.Sprint(n, " ", err, " ", w.Now())
			if c, ok := errors.AsType[outcome.Classifier](err); ok {
				got[i] += fmt.Sprint(" ", c.Outcome().Class)
			}
		})
	}
	run(t, w)
	return got
}

func TestUpstream(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		name string
		b    sim.Behaviour
		at   []time.Duration
		want []string
	}{
		{"zero", sim.Behaviour{}, []time.Duration{0, 0, 5}, []string{"1 <nil> 0s", "2 <nil> 0s", "3 <nil> 5ns"}},
		{"latency", sim.Behaviour{Latency: 3}, []time.Duration{0, 2}, []string{"1 <nil> 3ns", "2 <nil> 5ns"}},
		{"rate", sim.Behaviour{Rate: bucket.Rate{Amount: 1, Per: second, Burst: 2}}, []time.Duration{0, 0, 0, second, second}, []string{
			"1 <nil> 0s", "2 <nil> 0s", "0 upstream: throttled 0s throttled", "3 <nil> 1s", "0 upstream: throttled 1s throttled"}},
		{"work", sim.Behaviour{Work: second}, []time.Duration{0, 0, 5 * second}, []string{"1 <nil> 1s", "2 <nil> 2s", "3 <nil> 6s"}},
		{"caller leaves", sim.Behaviour{Work: 7 * second}, []time.Duration{0, 0, 9 * second}, []string{
			"1 <nil> 7s", "0 late 10s", "0 late 19s"}},
		{"outage", sim.Behaviour{Outages: []sim.Outage{{From: 1, Until: 3}}}, []time.Duration{0, 1, 2, 3}, []string{
			"1 <nil> 0s", "0 upstream: outage 1ns failed", "0 upstream: outage 2ns failed", "2 <nil> 3ns"}},
		{"stall", sim.Behaviour{Work: second, Outages: []sim.Outage{{From: second, Until: 5 * second, Stall: true}}},
			[]time.Duration{0, second, 2 * second, 3 * second}, []string{"1 <nil> 1s", "2 <nil> 6s", "3 <nil> 7s", "4 <nil> 8s"}},
		{"faults", sim.Behaviour{Fails: 1}, []time.Duration{0}, []string{"0 upstream: fault 0s failed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1)
			if got := calls(t, w, w.Upstream(c.b), 10*second, c.at...); !slices.Equal(got, c.want) {
				t.Errorf("\ngot  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestUpstreamHintsAtTheInstantOfRoom(t *testing.T) {
	w := newWorld(t, 1)
	u := w.Upstream(sim.Behaviour{Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}, Hint: true})
	w.Go(func() {
		for range 10 {
			for {
				_, err := u.Call(background)
				c, throttled := errors.AsType[outcome.Classifier](err)
				if !throttled {
					break
				}
				sleep(w, c.Outcome().Hint.After)
			}
			sleep(w, 300*time.Millisecond)
		}
	})
	run(t, w)
	if c := u.Counts(); c.OK != 10 || c.Throttled != 9 || c.Calls != 19 {
		t.Errorf("got %+v; want every throttle followed by a success", c)
	}
}

func TestUpstreamCounts(t *testing.T) {
	w := newWorld(t, 1)
	u := w.Upstream(sim.Behaviour{
		Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 10}, Latency: 10 * time.Millisecond,
		Jitter: 40 * time.Millisecond, Fails: 0.1,
	})
	for range 1000 {
		at := time.Duration(w.Rand().Int64N(int64(5 * time.Second)))
		w.Go(func() {
			sleep(w, at)
			ctx, cancel := w.Clock().WithTimeout(background, 45*time.Millisecond, errLate)
			defer cancel()
			_, _ = u.Call(ctx)
		})
	}
	run(t, w)
	c := u.Counts()
	if c.Calls != 1000 || c.OK+c.Throttled+c.Failed < 950 || c.OK+c.Failed > 510 || c.Left == 0 || c.Failed == 0 {
		t.Errorf("got %+v", c)
	}
}

func TestUpstreamWithABadRatePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	newWorld(t, 1).Upstream(sim.Behaviour{Rate: bucket.Rate{Amount: -1, Per: 1}})
}

var _ func(context.Context) (int64, error) = (*sim.Upstream)(nil).Call
