package cache

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatOneProcessPutsAnotherFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		a, b := fleetOf(t, s, Options{}), fleetOf(t, s, Options{})
		defer a.Close()
		defer b.Close()
		e := text(strings.Repeat("hello ", 1000))
		e.Header, e.Meta = map[string][]string{"Content-Type": {"text/plain"}}, map[string]string{"tier": "primary"}
		a.Put(time.Now(), question(1), e)
		e.Stored = time.Now()
		synctest.Wait()
		if s.keep != 25*time.Hour {
			t.Errorf("kept for %v", s.keep)
		}
		time.Sleep(time.Minute)
		got, state, age := b.Get(t.Context(), time.Now(), question(1))
		if state != Hit || age != time.Minute || !same(got, e) {
			t.Errorf("%v, age %v, %+v", state, age, got)
		}
		before, _ := s.count()
		if _, state, _ := b.Get(t.Context(), time.Now(), question(1)); state != Hit {
			t.Error(state)
		}
		if after, _ := s.count(); after != before {
			t.Error("the store was asked for what memory has")
		}
		if n := b.Stats(); n.SharedHits != 1 || n.Hits != 2 {
			t.Errorf("%+v", n)
		}
	})
}

func fleetOf(t *testing.T, s Blobs, o Options) *Cache {
	o.Shared = s
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOldAnswerIsReplacedByAFresherOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		a, b := fleetOf(t, s, Options{}), fleetOf(t, s, Options{})
		defer a.Close()
		defer b.Close()
		a.Put(time.Now(), question(1), text("old"))
		synctest.Wait()
		time.Sleep(3 * time.Hour)
		if _, state, _ := a.Get(t.Context(), time.Now(), question(1)); state != Old {
			t.Error(state)
		}
		b.Put(time.Now(), question(1), text("new"))
		synctest.Wait()
		if e, state, _ := a.Get(t.Context(), time.Now(), question(1)); state != Hit || string(e.Body) != "new" {
			t.Errorf("%v %q", state, e.Body)
		}
	})
}

func TestOlderAnswerOfTheStoreIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		c := fleetOf(t, s, Options{})
		defer c.Close()
		c.Put(time.Now(), question(1), text("first"))
		synctest.Wait()
		time.Sleep(time.Hour)
		s.set(func() { s.fail = errShelf })
		c.Put(time.Now(), question(1), text("second"))
		synctest.Wait()
		s.set(func() { s.fail = nil })
		time.Sleep(2 * time.Hour)
		if e, state, age := c.Get(t.Context(), time.Now(), question(1)); state != Old || string(e.Body) != "second" || age != 2*time.Hour {
			t.Errorf("%v %q %v", state, e.Body, age)
		}
	})
}

// TestStoreThatHangsCostsItsTimeout checks that a hanging store delays callers by its timeout, and then not at all for a
// while.
func TestStoreThatHangsCostsItsTimeout(t *testing.T) {
	for _, deaf := range []bool{false, true} { // deaf: it also ignores the end of its context
		synctest.Test(t, func(t *testing.T) {
			s := newShelf()
			s.hang = !deaf
			if deaf {
				s.deaf = make(chan struct{})
			}
			c := fleetOf(t, s, Options{})
			defer c.Close()
			var took []time.Duration
			for i := range 100 {
				start := time.Now()
				if _, state, _ := c.Get(t.Context(), start, question(i)); state != Miss {
					t.Error(state)
				}
				took = append(took, time.Since(start))
				synctest.Wait()
			}
			for i, d := range took {
				if want := 50 * time.Millisecond; i < 3 && d != want || i >= 3 && d != 0 {
					t.Errorf("deaf %v: call %d took %v", deaf, i, d)
				}
			}
			if n := c.Stats(); n.SharedErrors != 3 || n.SharedSkipped != 97 {
				t.Errorf("deaf %v: %+v", deaf, n)
			}
			s.set(func() {
				if s.hang = false; deaf {
					close(s.deaf)
					s.deaf = nil
				}
			})
			time.Sleep(2 * time.Second)
			c.Put(time.Now(), question(1), text("x"))
			synctest.Wait()
			c.Forget(question(1))
			if _, state, _ := c.Get(t.Context(), time.Now(), question(1)); state != Hit {
				t.Errorf("deaf %v: the store is back and not used: %v", deaf, state)
			}
		})
	}
}

func TestManyCallersOfAHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.hang = true
		c := fleetOf(t, s, Options{})
		defer c.Close()
		var wg sync.WaitGroup
		for i := range 2000 {
			wg.Go(func() {
				start := time.Now()
				c.Get(t.Context(), start, question(i))
				if d := time.Since(start); d > 50*time.Millisecond {
					t.Errorf("took %v", d)
				}
			})
		}
		wg.Wait()
		if gets, _ := s.count(); gets > mostReads {
			t.Errorf("%d reads at once", gets)
		}
	})
}

func TestStoreThatFailsFailsNobody(t *testing.T) {
	var told []string
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.fail = errShelf
		c := fleetOf(t, s, Options{Events: Events{SharedFailed: func(op string, err error) { told = append(told, op+": "+err.Error()) }}})
		c.Put(time.Now(), question(1), text("x"))
		synctest.Wait()
		if _, state, _ := c.Get(t.Context(), time.Now(), question(1)); state != Hit {
			t.Error(state)
		}
		if _, state, _ := c.Get(t.Context(), time.Now(), question(2)); state != Miss {
			t.Error(state)
		}
		c.Close()
	})
	if len(told) != 2 || told[0] != "put: the shelf is broken" || told[1] != "get: the shelf is broken" {
		t.Errorf("%q", told)
	}
}

// TestStoreThatLies uses a store that returns values of other keys, old values, and random bytes.
func TestStoreThatLies(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 6))
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		a := fleetOf(t, s, Options{})
		for i := range 50 {
			a.Put(time.Now(), question(i), text(strings.Repeat("answer ", i)))
		}
		synctest.Wait()
		a.Close()
		var all [][]byte
		for _, v := range s.blobs {
			all = append(all, v)
		}
		s.lie = func(_, v []byte) []byte {
			switch r.IntN(4) {
			case 0:
				return bytes.Clone(all[r.IntN(len(all))])
			case 1:
				return v[:r.IntN(len(v)+1)]
			case 2:
				if len(v) > 0 {
					v[r.IntN(len(v))]++
				}
				return v
			}
			return bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(1000))
		}
		c := fleetOf(t, s, Options{})
		defer c.Close()
		for range 2000 {
			i := r.IntN(50)
			e, state, _ := c.Get(t.Context(), time.Now(), question(i))
			if state != Miss && string(e.Body) != strings.Repeat("answer ", i) {
				t.Fatalf("seed %d: question %d has the answer %.40q", seed, i, e.Body)
			}
			c.Forget(question(i))
		}
		if n := c.Stats(); n.SharedDamaged < 1000 || n.SharedErrors != 0 {
			t.Errorf("seed %d: %+v", seed, n)
		}
	})
}

func TestAnswerFromTheFutureIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		ahead := fleetOf(t, s, Options{})
		defer ahead.Close()
		later := time.Now().Add(time.Hour).Round(0)
		ahead.Put(later, question(1), text("x"))
		ahead.Put(time.Now().Add(30*time.Second).Round(0), question(2), text("x"))
		synctest.Wait()
		c := fleetOf(t, s, Options{})
		defer c.Close()
		if _, state, _ := c.Get(t.Context(), time.Now(), question(1)); state != Miss {
			t.Errorf("an hour ahead: %v", state)
		}
		if _, state, age := c.Get(t.Context(), time.Now(), question(2)); state != Hit || age != 0 {
			t.Errorf("30s ahead: %v, age %v", state, age)
		}
	})
}

func TestWritesAreDroppedWhenTheQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.hang = true
		c := fleetOf(t, s, Options{Queue: 4})
		for i := range 20 {
			c.Put(time.Now(), question(i), text("x"))
			synctest.Wait()
		}
		if n := c.Stats().Dropped; n != 20-4-writers {
			t.Errorf("%d dropped", n)
		}
		start := time.Now()
		c.Close()
		if d := time.Since(start); d > time.Second {
			t.Errorf("Close took %v", d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.hang = true
		c := fleetOf(t, s, Options{QueueBytes: 1000})
		defer c.Close()
		for i := range 5 {
			c.Put(time.Now(), question(i), text(strings.Repeat("x", 200)))
		}
		if n := c.Stats().Dropped; n != 4 {
			t.Errorf("%d dropped, want all but one", n)
		}
	})
}

func TestCloseWritesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		c := fleetOf(t, s, Options{})
		for i := range 200 {
			c.Put(time.Now(), question(i), text("x"))
		}
		c.Close()
		if len(s.blobs) != 200 {
			t.Errorf("%d written", len(s.blobs))
		}
		c.Put(time.Now(), question(999), text("x"))
		c.Get(t.Context(), time.Now(), question(998))
		if n := c.Stats(); n.Dropped != 1 || len(s.blobs) != 200 {
			t.Errorf("%+v", n)
		}
	})
}

func TestWhatIsTooLargeForTheStoreStaysInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.most = 100
		c := fleetOf(t, s, Options{})
		defer c.Close()
		c.Put(time.Now(), question(1), text(strings.Repeat("x", 200)))
		synctest.Wait()
		if _, puts := s.count(); puts != 0 {
			t.Error("written")
		}
		if _, state, _ := c.Get(t.Context(), time.Now(), question(1)); state != Hit {
			t.Error(state)
		}
	})
}

func TestOneProcessOfAFleetRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		var fleet []*Cache
		for range 5 {
			c := fleetOf(t, s, Options{})
			defer c.Close()
			fleet = append(fleet, c)
		}
		fleet[0].Put(time.Now(), question(1), text("old"))
		synctest.Wait()
		time.Sleep(time.Hour)
		calls := 0
		ask := func() {
			for _, c := range fleet {
				e, state, _ := c.Get(t.Context(), time.Now(), question(1))
				if state == Stale {
					c.Refresh(question(1), func(context.Context) (Entry, error) {
						calls++
						time.Sleep(2 * time.Second)
						return text("new"), nil
					})
				} else if state != Hit || string(e.Body) != "new" {
					t.Errorf("%v %q", state, e.Body)
				}
			}
		}
		for range 50 {
			ask()
			synctest.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		if calls != 1 {
			t.Errorf("%d refreshes in the fleet", calls)
		}
		for i, c := range fleet {
			if _, state, _ := c.Get(t.Context(), time.Now(), question(1)); state != Hit {
				t.Errorf("process %d: %v", i, state)
			}
			if n := c.Stats(); n.RefreshFailures != 0 {
				t.Errorf("process %d: %+v", i, n)
			}
		}
	})
}

// TestFailedRefreshBacksOffInAFleet checks that the process with the lock retries as a single process does, and that the
// other process does not refresh meanwhile.
func TestFailedRefreshBacksOffInAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		a, b := fleetOf(t, s, Options{}), fleetOf(t, s, Options{})
		defer a.Close()
		defer b.Close()
		var at [2][]int
		start := time.Now()
		for time.Since(start) < time.Minute {
			for i, c := range []*Cache{a, b} {
				c.Refresh(question(1), func(context.Context) (Entry, error) {
					at[i] = append(at[i], int(time.Since(start).Round(time.Second)/time.Second))
					return Entry{}, errUpstream
				})
				synctest.Wait()
			}
			time.Sleep(10 * time.Millisecond)
		}
		if want := "[[0 1 3 7 15 31] []]"; fmt.Sprint(at) != want {
			t.Errorf("at %v, want %v", at, want)
		}
	})
}

func TestRefreshGoesOnWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.hang = true
		c := fleetOf(t, s, Options{})
		defer c.Close()
		c.Refresh(question(1), func(context.Context) (Entry, error) { return text("x"), nil })
		time.Sleep(5 * time.Second)
		if _, state, _ := c.Get(t.Context(), time.Now(), question(1)); state != Hit {
			t.Error(state)
		}
	})
}

func TestCallerWhoLeavesIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.hang = true
		c := fleetOf(t, s, Options{})
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		start := time.Now()
		c.Get(ctx, start, question(1))
		if d := time.Since(start); d != 5*time.Millisecond {
			t.Errorf("took %v", d)
		}
	})
}
