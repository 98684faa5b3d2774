package limit

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/clock"
)

// crowded is two processes of which the second has no room for another key.
func crowded(t *testing.T, s Store, l Limit, o FleetOptions) []*Registry {
	l.Scope, l.MaxKeys = "tenant", 1
	_, regs := fleetOf(t, 2, s, l, o)
	for i := range stretch {
		goOne(context.Background(), clock.System.Now()+sec, Charge{regs[1], fmt.Sprint("key", i), 1})
	}
	return regs
}

// The ways in which a limit of ten a minute is kept.
func tenAMinute() []Limit {
	return []Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Minute, Burst: 10}},
		rollingLimit(10, time.Minute),
		{Name: "l", Shape: Fixed, Rate: bucket.Rate{Amount: 10}, Every: bucket.Hour},
	}
}

// A key for which one process has no room has its limit once, in the whole fleet, and all of it.
func TestAKeyForWhichThereIsNoRoomHasItsLimitOnce(t *testing.T) {
	for _, l := range tenAMinute() {
		synctest.Test(t, func(t *testing.T) {
			regs := crowded(t, NewMemory(nil), l, FleetOptions{})
			n := 0
			for i := range 40 {
				if ok, _, _ := goOne(context.Background(), clock.System.Now(), Charge{regs[i%2], "x", 1}); ok {
					n++
				}
			}
			if _, own := regs[1].Own(clock.System.Now(), "x"); own {
				t.Fatal("there is room")
			}
			if n < 9 || n > 10 {
				t.Errorf("%v: %d of 10 went", l.Shape, n)
			}
			got := 0
			for range 20 {
				if ok, _, _ := goOne(context.Background(), clock.System.Now(), Charge{regs[1], "another", 1}); ok {
					got++
				}
			}
			if got < 9 || got > 10 {
				t.Errorf("%v: %d of 10 went of another key beyond the room", l.Shape, got)
			}
		})
	}
}

// Without the store, and when there is room again, such a key has no part of what it had before.
func TestAKeyForWhichThereIsNoRoomHasNoPart(t *testing.T) {
	for _, l := range tenAMinute() {
		l.Rate.Amount, l.Rate.Burst = 100*l.Rate.Amount, 100*l.Rate.Burst
		synctest.Test(t, func(t *testing.T) {
			s := &faulty{Store: NewMemory(nil)}
			regs := crowded(t, s, l, FleetOptions{})
			call := func(i int, key string) (bool, Verdict) {
				ok, v, _ := goOne(context.Background(), clock.System.Now(), Charge{regs[i], key, 1})
				return ok, v
			}
			for range 200 {
				call(0, "x")
				call(1, "x")
				for k := range stretch { // they need their room
					call(1, fmt.Sprint("key", k))
				}
				time.Sleep(100 * time.Millisecond)
			}
			s.down.Store(true)
			kept := 0
			for i := range 200 {
				time.Sleep(100 * time.Millisecond)
				for k := range stretch {
					if ok, _ := call(1, fmt.Sprint("key", k)); ok {
						kept++
					}
				}
				if ok, v := call(1, "x"); i > 30 && (ok || v.Lack == LacksNothing) { // by then what was leased has had its time
					t.Fatalf("%v: went %v, %+v", l.Shape, ok, v)
				}
			}
			if kept == 0 {
				t.Errorf("%v: nothing went of a key that has room", l.Shape)
			}
			s.down.Store(false)
			time.Sleep(3 * sec)
			if ok, v := call(1, "x"); !ok {
				t.Errorf("%v: nothing went when the store was back: %+v", l.Shape, v)
			}
		})
	}
}

// Those who wait for such a key wait together, in order, and there are never more than some that are known.
func TestKeysForWhichThereIsNoRoomAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		regs := crowded(t, NewMemory(nil), tenAMinute()[0], FleetOptions{})
		now := clock.System.Now()
		if a, b := regs[1].Get(now, "x"), regs[1].Get(now, "x"); a != b {
			t.Error("two limiters of one key")
		}
		for i := range 3 * mostPassing {
			goOne(context.Background(), now, Charge{regs[1], fmt.Sprint("another", i), 1})
		}
		if n := len(regs[1].passing); n > mostPassing {
			t.Errorf("%d keys are known, want %d at most", n, mostPassing)
		}
		if n := regs[1].Len(); n > stretch {
			t.Errorf("%d keys have room, want %d at most", n, stretch)
		}
	})
}
