package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errUpstream = errors.New("upstream is down")

func TestHundredStaleReadersRefreshOnce(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, c *Cache) {
		k := question(1)
		c.Put(time.Now(), k, text("old"))
		time.Sleep(time.Hour)
		var calls atomic.Int64
		var started atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				e, s, age := c.Get(t.Context(), time.Now(), k)
				if s != Stale || string(e.Body) != "old" || age != time.Hour {
					t.Errorf("%v %q %v", s, e.Body, age)
				}
				if c.Refresh(k, func(context.Context) (Entry, error) {
					calls.Add(1)
					time.Sleep(time.Second)
					return text("new"), nil
				}) {
					started.Add(1)
				}
			})
		}
		wg.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if calls.Load() != 1 || started.Load() != 1 {
			t.Errorf("%d refreshes, %d started, want one", calls.Load(), started.Load())
		}
		if e, s, age := c.Get(t.Context(), time.Now(), k); s != Hit || string(e.Body) != "new" || age != time.Second {
			t.Errorf("%v %q %v", s, e.Body, age)
		}
		if n := c.Stats(); n.Refreshes != 1 || n.RefreshFailures != 0 {
			t.Errorf("%+v", n)
		}
		if len(c.refresh.keys) != 0 {
			t.Error("a refresh that succeeded is remembered")
		}
	})
}

// TestFailedRefreshBacksOff calls Refresh a hundred times a second for five minutes.
func TestFailedRefreshBacksOff(t *testing.T) {
	var told []error
	o := Options{Events: Events{RefreshFailed: func(_ Key, err error) { told = append(told, err) }}}
	bubble(t, o, func(t *testing.T, c *Cache) {
		var at []time.Duration
		start := time.Now()
		for time.Since(start) < 5*time.Minute {
			c.Refresh(question(1), func(context.Context) (Entry, error) {
				at = append(at, time.Since(start).Round(time.Second))
				return Entry{}, errUpstream
			})
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
		}
		want := "[0s 1s 3s 7s 15s 31s 1m3s 2m3s 3m3s 4m3s]"
		if fmt.Sprint(at) != want {
			t.Errorf("at %v, want %v", at, want)
		}
		if n := c.Stats(); n.RefreshFailures != 10 || len(told) != 10 || !errors.Is(told[0], errUpstream) {
			t.Errorf("%+v, told %v", n, told)
		}
	})
}

func TestRefreshesAreBounded(t *testing.T) {
	bubble(t, Options{Refreshes: 3}, func(t *testing.T, c *Cache) {
		gate := make(chan struct{})
		n := 0
		for i := range 10 {
			if c.Refresh(question(i), func(context.Context) (Entry, error) { <-gate; return text("x"), nil }) {
				n++
			}
		}
		close(gate)
		synctest.Wait()
		if n != 3 {
			t.Errorf("%d under way, want 3", n)
		}
		if !c.Refresh(question(9), func(context.Context) (Entry, error) { return text("x"), nil }) {
			t.Error("there is no room when they are over")
		}
	})
}

func TestRefreshThatPanicsOrExitsIsAFailure(t *testing.T) {
	var told []string
	o := Options{Events: Events{RefreshFailed: func(_ Key, err error) { told = append(told, err.Error()) }}}
	bubble(t, o, func(t *testing.T, c *Cache) {
		for i, fn := range []func(context.Context) (Entry, error){
			func(context.Context) (Entry, error) { panic("oh") },
			func(context.Context) (Entry, error) { runtime.Goexit(); return Entry{}, nil },
			func(context.Context) (Entry, error) { return text(strings.Repeat("x", 8<<20)), nil },
		} {
			if !c.Refresh(question(i), fn) {
				t.Error("not started")
			}
			synctest.Wait()
			if c.Refresh(question(i), fn) {
				t.Error("tried again at once")
			}
		}
		if len(told) != 3 || c.refresh.running != 0 {
			t.Errorf("%q, %d running", told, c.refresh.running)
		}
	})
}

func TestRefreshHasItsOwnDeadline(t *testing.T) {
	bubble(t, Options{RefreshTimeout: 3 * time.Second}, func(t *testing.T, c *Cache) {
		start := time.Now()
		var took time.Duration
		c.Refresh(question(1), func(ctx context.Context) (Entry, error) {
			<-ctx.Done()
			took = time.Since(start)
			return Entry{}, ctx.Err()
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if took != 3*time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestCloseEndsRefreshesAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.Put(time.Now(), question(2), text("x"))
		over := false
		c.Refresh(question(1), func(ctx context.Context) (Entry, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			over = true
			return Entry{}, context.Cause(ctx)
		})
		if c.Close(); !over {
			t.Error("closed before the refresh was over")
		}
		if c.Refresh(question(1), nil) {
			t.Error("started after Close")
		}
		if _, s, _ := c.Get(t.Context(), time.Now(), question(2)); s != Hit {
			t.Error("a closed cache has forgotten")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestFailuresAreForgotten(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, c *Cache) {
		for i := range mostAttempts + mostAttempts/4 {
			c.Refresh(question(i), func(context.Context) (Entry, error) { return Entry{}, errUpstream })
			synctest.Wait()
		}
		if n := len(c.refresh.keys); n > mostAttempts {
			t.Errorf("%d are remembered", n)
		}
	})
}
