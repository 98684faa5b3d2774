package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A call that holds one item does not hold another.
func TestAnItemHeldHoldsNoOther(t *testing.T) {
	s := New(nil, "weir", Options{})
	one, other := s.entry("one"), s.entry("other")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := one.lock(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer one.unlock()
	if one.lock(ctx) == nil {
		t.Error("an item is held twice")
	}
	if other.lock(ctx) != nil {
		t.Fatal("another item cannot be held meanwhile")
	}
	other.unlock()
}

// One tenant gets 5,000 calls per second. At the 99th percentile, calls of the other tenants wait no longer than
// without it. Time is virtual, so only waits count: for responses, for locks held meanwhile, and in queues.
func TestAHotKeyMovesNoOther(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	calm, hot := waitsBeside(t, 0), waitsBeside(t, 5000)
	if len(calm) < 1000 || len(hot) != len(calm) {
		t.Fatalf("%d and %d calls", len(calm), len(hot))
	}
	at := len(calm) * 99 / 100
	t.Logf("p99 %v without the hot key, %v beside it", calm[at], hot[at])
	if hot[at] > calm[at]+time.Millisecond {
		t.Errorf("p99 is %v, and %v beside the hot key", calm[at], hot[at])
	}
}

// waitsBeside returns the sorted waits of the calls of 30 tenants while another tenant gets the given number of
// calls per second.
func waitsBeside(t *testing.T, hot int) (waits []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		f.wait = func() { time.Sleep(2 * time.Millisecond) }
		fleet := fleet.New(New(clientOf(f), "weir", Options{}), fleet.Options{})
		fleet.Start()
		u, err := weir.New("api", weir.Policy{MaxWait: time.Second, Limits: []limit.Limit{
			{Name: "tenant", Scope: "tenant", Rate: bucket.Rate{Amount: 4000, Per: time.Second, Burst: 100}},
		}}, weir.Options{Fleet: fleet})
		if err != nil {
			t.Fatal(err)
		}
		call := func(tenant string) time.Duration {
			begin := time.Now()
			p, err := u.Acquire(context.Background(), weir.Call{Keys: map[string]string{"tenant": tenant}})
			if err == nil {
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
			return time.Since(begin)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		for i := range hot / 100 { // each calls 100 times per second
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 97 * time.Microsecond)
				for range 500 {
					begin := time.Now()
					call("hot")
					time.Sleep(max(0, 10*time.Millisecond-time.Since(begin)))
				}
			})
		}
		for i := range 30 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 1300 * time.Microsecond)
				for n := range 55 {
					took := call(fmt.Sprint("tenant", i))
					if n >= 15 { // limits of a new store begin as exhausted
						mu.Lock()
						waits = append(waits, took)
						mu.Unlock()
					}
					time.Sleep(97 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		u.Close()
		_ = fleet.Close(context.Background())
	})
	slices.Sort(waits)
	return waits
}
