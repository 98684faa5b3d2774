package weir_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// stallsAt is the clock of a machine that stalls before the clock is read the nth time.
type stallsAt struct {
	clock.Clock
	n, reads atomic.Int32
}

func (c *stallsAt) Now() time.Duration {
	if c.reads.Add(1) == c.n.Load() {
		pass(700 * ms)
	}
	return c.Clock.Now()
}

// lastGrant is a store that records when the last granted units were requested.
type lastGrant struct {
	fleet.Store
	at time.Duration
}

func (s *lastGrant) Take(ctx context.Context, a *fleet.Ask) error {
	at := clock.System.Now()
	err := s.Store.Take(ctx, a)
	if err == nil && a.Granted > 0 {
		s.at = at
	}
	return err
}

// Wherever the machine stalls before the last reading of the clock, no call uses a store's grant after it has
// expired.
func TestNoStallLetsLateUnitsGo(t *testing.T) {
	shared := limit.Limit{Name: "shared", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: sec}}
	own := rate("own", 100, sec, 10)
	own.Local = true
	for name, p := range map[string]weir.Policy{
		"": steady(shared), "in turn": inTurn(shared), "beside one of its own": steady(own, shared), "both": inTurn(own, shared),
	} {
		stalls := true
		for n := int32(1); stalls; n++ {
			synctest.Test(t, func(t *testing.T) {
				c, s := &stallsAt{Clock: clock.System}, &lastGrant{Store: fleet.NewMemory(nil)}
				u := open(t, p, weir.Options{Clock: c, Fleet: fleet.New(s, fleet.Options{Lease: -1, Clock: c})})
				c.reads.Store(0)
				c.n.Store(n)
				if _, err := u.Acquire(t.Context(), of("a")); err != nil {
					t.Fatalf("%s, stall %d: %v", name, n, err)
				}
				if since(s.at) >= 10*ms {
					t.Errorf("%s, stall %d: let go %v after the store was asked, want within 10ms", name, n, since(s.at))
				}
				stalls = c.reads.Load() >= n
			})
		}
	}
}
