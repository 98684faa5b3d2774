package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// TestJumps runs a fleet of two processes while the clock of their store is set forward or back by an hour. In some
// histories the clock is then set right again. open returns the store, in a bubble of virtual time, with that
// clock. The store must know the group. All stores have the same bounds:
//
//   - A jump forward costs at most what the limit holds, once per jump. The store cannot tell it from an hour that passed.
//   - A jump back costs nothing, and stops no caller for longer than shut plus the time in which the limit refills.
//
// After the last jump, the processes use the limit as before, and the store knows both.
func TestJumps(t *testing.T, shut time.Duration, open func(t *testing.T, now func() time.Time) fleet.Store) {
	for _, l := range []limit.Limit{
		{Name: "bucket", Rate: bucket.Rate{Amount: 20, Per: time.Second, Burst: 20}},
		{Name: "rolling", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: 5 * time.Second}},
		{Name: "quota", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Minute},
		{Name: "day", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Day},
	} {
		for name, jumps := range map[string][]time.Duration{
			"forward and right again": {time.Hour, -time.Hour}, "back and right again": {-time.Hour, time.Hour}, "back a little": {-5 * time.Second},
		} {
			t.Run(l.Name+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { jump(t, l, jumps, shut, open) })
			})
		}
	}
}

// calm returns how long the clock runs undisturbed before each jump and after the last.
func calm(l limit.Limit) time.Duration {
	if l.Every == bucket.Minute {
		return 2 * time.Minute
	}
	return 20 * time.Second
}

// A setClock is the true time plus an error.
type setClock struct {
	mu sync.Mutex
	by time.Duration
}

func (c *setClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func (c *setClock) set(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += by
}

func jump(t *testing.T, l limit.Limit, jumps []time.Duration, shut time.Duration, open func(t *testing.T, now func() time.Time) fleet.Store) {
	c := new(setClock)
	s := open(t, c.now)
	begin := time.Now()
	end := begin.Add(time.Duration(len(jumps)+1) * calm(l))
	var went instants
	var wg sync.WaitGroup
	var fleets []*fleet.Fleet
	for range 2 {
		f := fleet.New(s, fleet.Options{})
		f.Start()
		fleets = append(fleets, f)
		defer func() {
			if err := f.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			wg.Go(func() {
				for time.Now().Before(end) {
					if Granted(t, r) {
						went.note(time.Now())
					}
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
	}
	var set []time.Time
	for _, by := range jumps {
		time.Sleep(calm(l))
		c.set(by)
		set = append(set, time.Now())
	}
	wg.Wait()
	judge(t, l, jumps, shut, begin, append(set, end), went.all)
	for _, f := range fleets {
		if p := f.Places()[0]; f.Away() || f.Alive() != 2 || p.Out > 0.03 {
			t.Errorf("in the end: %d alive, away %v, %+v", f.Alive(), f.Away(), p)
		}
	}
}

// Granted asks for one unit and waits at most two seconds for it. It reports whether it got the unit.
func Granted(t *testing.T, r *limit.Registry) bool {
	asked := time.Now()
	now := clock.System.Now()
	until := now + 2*time.Second
	var p limit.Charges
	p.Add(limit.Charge{Registry: r, Cost: 1})
	v := p.Take(now)
	for p.Asks(v, until-now) {
		var err error
		if v, err = p.Fetch(context.Background(), now, until, limit.Normal); err != nil {
			t.Error(err)
		}
		if err != nil || !v.OK {
			return false
		}
		now = clock.System.Now()
		v = p.Take(now)
	}
	if d := time.Since(asked); d > 3*time.Second {
		t.Errorf("a call that may wait 2s waited %v", d)
	}
	return v.OK
}

// instants are the times at which units were spent.
type instants struct {
	mu  sync.Mutex
	all []time.Time
}

func (i *instants) note(at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, at)
}

// judge checks the units spent. marks are the instants of the jumps and the end.
func judge(t *testing.T, l limit.Limit, jumps []time.Duration, shut time.Duration, begin time.Time, marks, went []time.Time) {
	slices.SortFunc(went, time.Time.Compare)
	per, pause := l.Rate.Per, shut+l.Rate.Per
	switch l.Every {
	case bucket.Minute:
		per, pause = time.Minute, shut+2*time.Minute // the rest of the window that the clock shows, and of the next one
	case bucket.Day:
		per, pause = 24*time.Hour, 24*time.Hour
	}
	from := begin
	for i, until := range marks {
		n := between(went, from, until)
		most := int64(until.Sub(from)*time.Duration(l.Rate.Amount)/per) + 1
		if i == 0 || jumps[i-1] > 0 {
			most += holds(l)
		}
		if n > most {
			t.Errorf("%d went in %v after jump %d, want %d at most", n, until.Sub(from), i, most)
		}
		if i > 0 && jumps[i-1] < 0 && shut > calm(l) {
			return // the pause outlasts this test
		}
		if d := longest(went, from, until); d > pause {
			t.Errorf("nothing went for %v after jump %d", d, i)
		}
		if n := between(went, until.Add(-per-per/20), until); per < calm(l) && n < l.Rate.Amount*95/100 {
			t.Errorf("%d went in %v long after jump %d, want %d", n, per, i, l.Rate.Amount)
		}
		from = until
	}
}

// longest returns the longest time in which no unit was spent.
func longest(went []time.Time, from, until time.Time) (d time.Duration) {
	for _, w := range went {
		if !w.Before(from) && w.Before(until) {
			d, from = max(d, w.Sub(from)), w
		}
	}
	return max(d, until.Sub(from))
}

// holds returns the units that may be spent at once, in addition to the rate.
func holds(l limit.Limit) int64 {
	if l.Shape == limit.Bucket {
		return l.Rate.Burst
	}
	return l.Rate.Amount
}

func between(went []time.Time, from, until time.Time) (n int64) {
	for _, w := range went {
		if !w.Before(from) && w.Before(until) {
			n++
		}
	}
	return n
}
