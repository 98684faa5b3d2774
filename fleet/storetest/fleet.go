package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A member is a process that shares limits through the store, as weir does it.
type member struct {
	w     *world
	group *fleet.Group
}

// member makes one more process.
func (w *world) member() *member {
	w.Helper()
	f := fleet.New(w.open(w), fleet.Options{Timeout: patience, Guard: time.Second})
	f.Start()
	w.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			w.Error(err)
		}
	})
	return &member{w, f.Group(w.group)}
}

// share makes a limit one that the process shares with the others.
func (m *member) share(l limit.Limit) *limit.Registry {
	m.w.Helper()
	r, err := limit.NewShared(clock.System.Now(), l, m.group)
	if err != nil {
		m.w.Fatal(err)
	}
	return r
}

// try takes what a call costs if it may go at once.
func (m *member) try(r *limit.Registry, cost int64) (*limit.Charges, bool) {
	m.w.Helper()
	p := new(limit.Charges)
	p.Add(limit.Charge{Registry: r, Key: "k", Cost: cost})
	now := clock.System.Now()
	for v := p.Take(now); ; v = p.Take(now) {
		if !v.Ask {
			return p, v.OK
		}
		v, err := p.Fetch(context.Background(), now, now, limit.Normal)
		if err != nil {
			m.w.Fatalf("fetch: %v", err)
		}
		if !v.OK {
			return p, false
		}
		now = clock.System.Now()
	}
}

// lasting are limits that get nothing back while a test lasts.
func lasting(amount int64) []limit.Limit {
	return []limit.Limit{
		{Name: "bucket", Unit: "tokens", Rate: bucket.Rate{Amount: 100, Per: 100 * time.Hour, Burst: amount}},
		{Name: "rolling", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: amount, Per: 100 * time.Hour}},
		{Name: "fixed", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: amount}, Every: bucket.Month},
	}
}

// returnsAfterRefusals: each call reserves three times of what it uses, and says so
// only when others have been refused. Yet nearly all is used.
func returnsAfterRefusals(w *world) {
	const amount, reserved, used = 30_000, 300, 100
	for _, l := range lasting(amount) {
		w.Run(l.Name, func(t *testing.T) {
			w := newWorld(t, w.suite)
			m := w.member()
			r := m.share(l)
			var flying []*limit.Charges
			gone, since := 0, clock.System.Now()
			for gone+reserved <= amount && clock.System.Now() < since+patience {
				if p, ok := m.try(r, reserved); ok {
					flying, gone, since = append(flying, p), gone+used, clock.System.Now()
				} else if len(flying) > 0 {
					flying[0].Settle(clock.System.Now(), map[string]int64{"tokens": used})
					flying = flying[1:]
				} else {
					_ = clock.System.Sleep(context.Background(), time.Millisecond)
				}
			}
			if gone+reserved <= amount {
				t.Errorf("%d of %d used, and no more comes back", gone, amount)
			}
		})
	}
}
