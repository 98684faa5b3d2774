package fleet

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// crowded returns two processes. The second has no room for another key.
func crowded(t *testing.T, s Store, l limit.Limit, o Options) []*limit.Registry {
	l.Scope, l.MaxKeys = "tenant", 1
	_, regs := fleetOf(t, 2, s, l, o)
	for i := range room {
		goOne(context.Background(), clock.System.Now()+sec, limit.Charge{Registry: regs[1], Key: fmt.Sprint("key", i), Cost: 1})
	}
	return regs
}

// tenAMinute returns limits of ten in each shape: per minute, and per hour for the quota.
func tenAMinute() []limit.Limit {
	return []limit.Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Minute, Burst: 10}},
		rollingLimit(10, time.Minute),
		{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 10}, Every: bucket.Hour},
	}
}

// A key without room in one process has its limit once in the complete fleet, and can use the full limit.
func TestAKeyForWhichThereIsNoRoomHasItsLimitOnce(t *testing.T) {
	for _, l := range tenAMinute() {
		synctest.Test(t, func(t *testing.T) {
			regs := crowded(t, NewMemory(nil), l, Options{})
			n := 0
			for i := range 40 {
				if ok, _, _ := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[i%2], Key: "x", Cost: 1}); ok {
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
				if ok, _, _ := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[1], Key: "another", Cost: 1}); ok {
					got++
				}
			}
			if got < 9 || got > 10 {
				t.Errorf("%v: %d of 10 went of another key beyond the room", l.Shape, got)
			}
		})
	}
}

// During an outage, and when there is room again, such a key has no part from before.
func TestAKeyForWhichThereIsNoRoomHasNoPart(t *testing.T) {
	for _, l := range tenAMinute() {
		l.Rate.Amount, l.Rate.Burst = 100*l.Rate.Amount, 100*l.Rate.Burst
		synctest.Test(t, func(t *testing.T) {
			s := &faulty{Store: NewMemory(nil)}
			regs := crowded(t, s, l, Options{})
			call := func(i int, key string) (bool, limit.Verdict) {
				ok, v, _ := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[i], Key: key, Cost: 1})
				return ok, v
			}
			for range 200 {
				call(0, "x")
				call(1, "x")
				for k := range room { // they need their room
					call(1, fmt.Sprint("key", k))
				}
				time.Sleep(100 * time.Millisecond)
			}
			s.down.Store(true)
			kept := 0
			for i := range 200 {
				time.Sleep(100 * time.Millisecond)
				for k := range room {
					if ok, _ := call(1, fmt.Sprint("key", k)); ok {
						kept++
					}
				}
				if ok, v := call(1, "x"); i > 30 && (ok || v.Lack == limit.LacksNothing) { // leases have expired by then
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

// Calls for such a key wait together and in order. The number of known keys is bounded.
func TestKeysForWhichThereIsNoRoomAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		regs := crowded(t, NewMemory(nil), tenAMinute()[0], Options{})
		now := clock.System.Now()
		if a, b := regs[1].Get(now, "x"), regs[1].Get(now, "x"); a != b {
			t.Error("two limiters of one key")
		}
		for i := range 3 * mostPassing {
			goOne(context.Background(), now, limit.Charge{Registry: regs[1], Key: fmt.Sprint("another", i), Cost: 1})
		}
		if n := len(sourceOf(regs[1]).passing.byKey); n != mostPassing || sourceOf(regs[1]).passing.used.Len() != n {
			t.Errorf("%d keys are known, want %d", n, mostPassing)
		}
		if n := regs[1].Len(); n > room {
			t.Errorf("%d keys have room, want %d at most", n, room)
		}
	})
}

// Five thousand new keys per second cost a process and the store no more than a thousand, also during an
// outage. Calls for further keys are refused.
func TestKeysForWhichThereIsNoRoomCostNoMoreThanSome(t *testing.T) {
	for _, down := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var asks atomic.Int64
			s := &faulty{Store: &hooked{Store: NewMemory(nil), do: func(*Ask) { asks.Add(1) }}}
			regs := crowded(t, s, tenAMinute()[0], Options{})
			g := sourceOf(regs[1]).group
			time.Sleep(10 * sec)
			s.down.Store(down)
			before, asked := heapInUse(), asks.Load()
			const seconds = 3
			var most, refused, went int
			for i := range seconds * 100 {
				for k := range 50 {
					ok, v, _ := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[1], Key: fmt.Sprint("spray", i, "/", k), Cost: 1})
					switch {
					case ok:
						went++
					case v.Lack == limit.LacksStore && v.Wait > 0:
						refused++
					}
				}
				g.mu.Lock()
				most = max(most, len(g.queues))
				g.mu.Unlock()
				time.Sleep(10 * time.Millisecond)
			}
			if refused+went < seconds*4900 || down == (went >= seconds*mostPassing*9/10) {
				t.Errorf("down %v: %d went, and %d were refused", down, went, refused)
			}
			if n := asks.Load() - asked; n > (seconds+1)*mostPassing+200 {
				t.Errorf("down %v: %d asks of the store for %d keys, want %d a second at most", down, n, seconds*5000, mostPassing)
			}
			if most > 5*mostPassing/2 {
				t.Errorf("down %v: %d queues, want %d at most", down, most, 5*mostPassing/2)
			}
			if more := heapInUse() - before; more > 16<<20 {
				t.Errorf("down %v: %d KB more are in use", down, more>>10)
			}
			s.down.Store(false)
		})
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A call refused because of its key reports that, and its limiter keeps no state.
func TestAKeyThatIsOneTooManyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		regs := crowded(t, NewMemory(nil), tenAMinute()[0], Options{})
		now := clock.System.Now()
		for i := range mostPassing {
			regs[1].Get(now, fmt.Sprint("another", i))
		}
		var p limit.Charges
		p.Add(limit.Charge{Registry: regs[1], Key: "x", Cost: 1})
		p.Take(now)
		v, err := p.Fetch(context.Background(), now, now+sec, limit.Normal)
		if w := p.Lacks(now, 0); v.OK || err != nil || v.Lack != limit.LacksStore || v.Wait != passingKept || !w.Keys || w.Lack != limit.LacksStore || w.Wait != passingKept {
			t.Errorf("verdict %+v, %v; lacks %+v", v, err, w)
		}
		time.Sleep(passingKept)
		if ok, v, err := goOne(context.Background(), clock.System.Now()+sec, limit.Charge{Registry: regs[1], Key: "x", Cost: 1}); !ok {
			t.Errorf("it is refused when others are not used any more: %+v, %v", v, err)
		}
	})
}
