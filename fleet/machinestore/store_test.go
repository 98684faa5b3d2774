package machinestore_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/machinestore"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func open(t testing.TB, dir string) *machinestore.Store {
	t.Helper()
	s, err := machinestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shortDir returns a directory whose name is short enough for a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weirstore")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestAttachedProcessHasStoreOfHolder(t *testing.T) {
	dir := shortDir(t)
	open(t, dir)
	attached := open(t, dir)
	storetest.TestStore(t, func(testing.TB) fleet.Store { return attached }, storetest.Hammer(200*time.Millisecond))
}

// ask takes copies of one unit of a limit of 10 a minute.
func ask(t *testing.T, s fleet.Store, id uint64, copies int64) int64 {
	t.Helper()
	rule := &fleet.Rule{Name: "calls", Shape: limit.Rolling, Amount: 10, Ring: bucket.RingOf(bucket.Window{Amount: 10, Per: time.Minute})}
	a := &fleet.Ask{Group: "g", ID: id, Lane: id, Copies: copies, Claims: []fleet.Claim{{Rule: rule, Cost: 1}}}
	if err := s.Take(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return a.Granted
}

func TestTakenUnitsSurviveEndOfHolder(t *testing.T) {
	dir := shortDir(t)
	first, second, third := open(t, dir), open(t, dir), open(t, dir)
	got := ask(t, first, 1, 3) + ask(t, second, 2, 3)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	// A link to the former holder fails once. Whether that request was executed is unknown.
	for id := uint64(10); ; id++ {
		if _, _, err := third.Load(t.Context(), "g", []string{"x"}); err == nil {
			break
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, s := range []*machinestore.Store{second, third} {
		wg.Go(func() {
			for {
				if _, _, err := s.Load(t.Context(), "g", []string{"x"}); err == nil {
					break
				}
			}
			n := ask(t, s, uint64(100+i), 10)
			mu.Lock()
			defer mu.Unlock()
			got += n
		})
	}
	wg.Wait()
	if got != 10 {
		t.Errorf("granted %d, want 10 in all", got)
	}
}
