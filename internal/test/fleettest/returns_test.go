//go:build unix

package fleettest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// Calls reserve three times their use, and report it 2ms later. On every store almost all of the limit is used, and never
// more.
func TestWhatCallsDoNotUseIsUsedByOthers(t *testing.T) {
	group := fmt.Sprintf("tokens %d", time.Now().UnixNano())
	for _, c := range []struct {
		name string
		open func(t *testing.T) (s fleet.Store, guard, timeout time.Duration)
	}{
		{"redis", func(t *testing.T) (fleet.Store, time.Duration, time.Duration) {
			url := servers.Redis(t).URL()
			known(t, url, group)
			s, err := redisstore.Open(url, redisstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s, 0, 0
		}},
		{"dynamodb", func(t *testing.T) (fleet.Store, time.Duration, time.Duration) {
			s, err := dynamo(dynalite(t).Endpoint())
			if err != nil {
				t.Fatal(err)
			}
			return s, 100 * time.Millisecond, time.Second
		}},
		{"file", func(t *testing.T) (fleet.Store, time.Duration, time.Duration) {
			s, err := filestore.Open(filepath.Join(t.TempDir(), "weir.db"), filestore.Options{NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			return s, guards["file"], 0
		}},
		{"memory", func(*testing.T) (fleet.Store, time.Duration, time.Duration) { return fleet.NewMemory(nil), 0, 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			beside(t)
			s, guard, timeout := c.open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			usesReturns(t, group, s, guard, timeout)
		})
	}
}

// usesReturns checks one process's use of a store's limit.
func usesReturns(t *testing.T, group string, s fleet.Store, guard, timeout time.Duration) {
	const rate, reserved, used = 5000, 300, 100
	f := fleet.New(s, fleet.Options{Guard: guard, Timeout: timeout})
	f.Start()
	l := limit.Limit{Name: "tokens", Unit: "tokens", Rate: bucket.Rate{Amount: rate, Per: time.Second}}
	u, err := weir.New(group, weir.Policy{Limits: []limit.Limit{l}, MaxWait: time.Second}, weir.Options{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var at []time.Duration // times of the grants: on a busy machine callers continue later, some of them much later
	offset := monotonicLess(clock.System)
	call := func(ctx context.Context) (went bool) {
		p, err := u.Acquire(ctx, weir.Call{Cost: map[string]int64{"tokens": reserved}})
		if err != nil {
			return false
		}
		mu.Lock()
		at = append(at, p.Allowed()+offset)
		mu.Unlock()
		<-time.After(2 * time.Millisecond)
		p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": used}})
		return true
	}
	first, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for !call(first) && first.Err() == nil { // a busy machine takes time to start a store
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second+lasts())
	defer cancel()
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for ctx.Err() == nil {
				call(ctx)
			}
		})
	}
	wg.Wait()
	u.Close()
	closes(t, f)
	slices.Sort(at)
	judgeUse(t, l, at, used)
}

// closes ends a fleet that has its store. If the machine stalled, the fleet may have just lost it.
func closes(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	for begin := clock.System.Now(); f.Why() != nil; <-time.After(10 * time.Millisecond) {
		if clock.System.Now()-begin > time.Minute {
			t.Fatalf("the store is away: %v", f.Why())
		}
	}
	if err := f.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// judgeUse checks calls that used this many units each.
func judgeUse(t *testing.T, l limit.Limit, at []time.Duration, each int64) {
	t.Helper()
	if len(at) == 0 {
		t.Fatal("nothing was let go")
	}
	calls := l
	calls.Amount, calls.Burst = l.Amount/each, l.Full()/each
	worst, where := overBucket(calls, at)
	if worst > 0 {
		t.Errorf("%d calls over: %s", worst, where)
	}
	n := int64(0)
	for _, x := range at {
		if x > at[len(at)-1]-lasts() {
			n++
		}
	}
	share := float64(n*each) / (l.PerSecond() * lasts().Seconds())
	t.Logf("%d let go, %.1f%% of the rate in the last %v, %d over", len(at), 100*share, lasts(), worst)
	if share < usedShare() {
		t.Errorf("%.1f%% used, want 98%%", 100*share)
	}
}
