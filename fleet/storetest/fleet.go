package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A member is a process that shares limits through the store with weir's own client, package fleet.
type member struct {
	w     *world
	group *fleet.Group
	store *hearing
}

// hearing wraps a store and counts the units that a process cannot return. An ask may fail after the store has
// executed it, and some stores omit the marks of a repeat. Both happen wherever an answer takes longer than the
// process waits.
type hearing struct {
	fleet.Store
	mu   sync.Mutex
	asks map[uint64]unheard // by ID
}

// An unheard is the units of one ask that may never return: the units granted and the units settled.
type unheard struct{ granted, back int64 }

func (s *hearing) Take(ctx context.Context, a *fleet.Ask) error {
	err := s.Store.Take(ctx, a)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.asks[a.ID]
	if u.granted = 0; err != nil || !a.Again || len(a.Settle) > 0 {
		u.back = 0
	}
	for i := range a.Claims {
		switch c := &a.Claims[i]; {
		case err != nil:
			u.granted += a.Copies*c.Cost + c.Extra
		case a.Grants[i].Mark == fleet.Mark{}:
			u.granted += a.Granted*c.Cost + a.Grants[i].Extra
		}
	}
	for i := range a.Settle {
		if err != nil {
			u.back += a.Settle[i].Back
		}
	}
	s.asks[a.ID] = u
	return err
}

// missing returns how many units may never return.
func (s *hearing) missing() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.asks {
		n += u.granted + u.back
	}
	return n
}

// forget resets the count.
func (s *hearing) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.asks)
}

// member starts another process.
func (w *world) member() *member {
	w.Helper()
	s := &hearing{Store: w.open(w), asks: make(map[uint64]unheard)}
	f := fleet.New(s, fleet.Options{Timeout: patience, Guard: time.Second})
	f.Start()
	w.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			w.Error(err)
		}
	})
	return &member{w, f.Group(w.group), s}
}

// share returns a limit that the process shares with the other processes.
func (m *member) share(l limit.Limit) *limit.Registry {
	m.w.Helper()
	r, err := limit.NewShared(clock.System.Now(), l, m.group)
	if err != nil {
		m.w.Fatal(err)
	}
	return r
}

// try takes the cost of a call if the limit can grant it immediately.
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

// lasting returns limits that do not refill while a test runs.
func lasting(amount int64) []limit.Limit {
	return []limit.Limit{
		{Name: "bucket", Unit: "tokens", Rate: bucket.Rate{Amount: 300, Per: 100 * time.Hour, Burst: amount}},
		{Name: "rolling", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: amount, Per: 100 * time.Hour}},
		{Name: "fixed", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: amount}, Every: bucket.Month},
	}
}

// returnsAfterRefusals has calls reserve three times the units that they use. They report the usage only after
// other calls were refused. Yet the process uses nearly the complete limit, except units whose granting answer was
// lost: no store may take those back.
//
// One first call reserves units below all that return. Fewer units of a low position in a bucket may return if the
// settlements arrive out of order, as an ask and a settlement that are sent simultaneously may.
func returnsAfterRefusals(w *world) {
	const amount, reserved, used = 30_000, 300, 100
	const stays = amount / used * (reserved - used)
	for _, l := range lasting(stays + amount) {
		w.Run(l.Name, func(t *testing.T) {
			w := newWorld(t, w.suite)
			m := w.member()
			r := m.share(l)
			if _, ok := m.try(r, stays); !ok {
				t.Fatalf("no %d of %d", stays, stays+amount)
			}
			m.store.forget()
			var flying []*limit.Charges
			gone, since := int64(0), clock.System.Now()
			more := func() bool { return gone+reserved <= amount-m.store.missing() }
			for more() && clock.System.Now() < since+patience {
				if p, ok := m.try(r, reserved); ok {
					flying, gone, since = append(flying, p), gone+used, clock.System.Now()
				} else if len(flying) > 0 {
					flying[0].Settle(clock.System.Now(), map[string]int64{"tokens": used})
					flying = flying[1:]
				} else {
					_ = clock.System.Sleep(context.Background(), time.Millisecond)
				}
			}
			if more() {
				t.Errorf("%d of %d used, and no more comes back but the %d of lost answers", gone, amount, m.store.missing())
			}
		})
	}
}
