//go:build unix

package fleettest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// While the store is down, decisions continue without delay. When it returns, it decides again. The speed is logged, because it
// depends on the machine.
func TestDecisionsGoOnWhileTheStoreIsDead(t *testing.T) {
	server := servers.Redis(t)
	known(t, server.URL(), "up")
	store, err := redisstore.Open(server.URL(), redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var away bool
	var spent int64 // units admitted while it was down; a slow machine may also cause this at other times
	f := fleet.New(store, fleet.Options{Events: fleet.Events{Fallback: func(e fleet.FallbackEvent) {
		mu.Lock()
		defer mu.Unlock()
		away, spent = e.Away, spent+e.Spent
	}}})
	f.Start()
	u, err := weir.New("up", weir.Policy{MaxWait: -1, Limits: []limit.Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 10_000, Per: time.Second}},
	}}, weir.Options{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var took []time.Duration // durations of decisions while the store was down
	dead := false
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(200 * time.Microsecond):
				}
				begin := clock.System.Now()
				if p, err := u.Acquire(context.Background(), weir.Call{}); err == nil {
					p.Report(outcome.Outcome{Class: outcome.OK})
				}
				mu.Lock()
				if d := clock.System.Now() - begin; dead {
					took = append(took, d)
				}
				mu.Unlock()
			}
		})
	}
	set := func(v bool) { mu.Lock(); dead = v; mu.Unlock() }
	wait := func(want bool) {
		for begin := clock.System.Now(); ; {
			mu.Lock()
			is := away
			mu.Unlock()
			if is == want {
				return
			}
			if clock.System.Now()-begin > time.Minute {
				t.Fatalf("heard nothing of a fallback (away %v)", want)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	for f.Places()[0].Part == 0 { // a new process has no part
		<-time.After(10 * time.Millisecond)
	}
	set(true)
	server.Kill()
	wait(true)
	<-time.After(2 * time.Second)
	if err := f.Why(); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("it is away because of %v", err)
	}
	set(false)
	server.Restart()
	back := clock.System.Now()
	wait(false)
	resumed := clock.System.Now() - back
	close(stop)
	wg.Wait()
	u.Close()
	closes(t, f)
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if len(took) < 100 || spent == 0 {
		t.Fatalf("%d decisions and %d units while the store was dead", len(took), spent)
	}
	slices.Sort(took)
	t.Logf("%d decisions while dead: p50 %v, p99 %v, longest %v; resumed %v after it was back", len(took),
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1], resumed)
}
