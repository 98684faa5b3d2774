package fleet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// faulty is a store that can be made unavailable.
type faulty struct {
	Store
	down    atomic.Bool
	dropped atomic.Int32 // responses still to lose
}

var errDown = errors.New("the store is down")

func (s *faulty) Take(ctx context.Context, a *Ask) error {
	if s.down.Load() {
		return errDown
	}
	err := s.Store.Take(ctx, a)
	if err == nil && s.dropped.Add(-1) >= 0 {
		return errDown
	}
	return err
}

func (s *faulty) Beat(ctx context.Context, b *Beat) (Standing, error) {
	if s.down.Load() {
		return Standing{}, errDown
	}
	return s.Store.Beat(ctx, b)
}

// news records fallback events.
type news struct {
	mu  sync.Mutex
	all []FallbackEvent
	at  []time.Duration
}

func (n *news) hear(e FallbackEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all, n.at = append(n.all, e), append(n.at, clock.System.Now())
}

func TestAFleetGoesOnAtItsPartsWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
		s := &faulty{Store: NewMemory(nil)}
		var heard news
		_, regs := fleetOf(t, 4, s, l, Options{Outage: time.Minute, Events: Events{Fallback: heard.hear}})
		begin := clock.System.Now()
		var went [30]atomic.Int64
		var wg sync.WaitGroup
		for _, r := range regs {
			wg.Go(func() {
				for n := range 600 { // 20 per second each, 80 of the 100
					time.Sleep(begin + time.Duration(n)*50*time.Millisecond - clock.System.Now())
					before := clock.System.Now()
					ok, _, err := goOne(context.Background(), before+50*time.Millisecond, limit.Charge{Registry: r, Key: "", Cost: 1})
					if err != nil {
						t.Error(err)
					}
					if ok {
						went[min(29, (before-begin)/time.Second)].Add(1)
					}
				}
			})
		}
		time.Sleep(10 * time.Second)
		s.down.Store(true)
		time.Sleep(10 * time.Second)
		s.down.Store(false)
		back := clock.System.Now()
		wg.Wait()
		for i := range went {
			switch n := went[i].Load(); {
			case n > 101:
				t.Errorf("second %d: %d went, want 100 at most", i, n)
			case n < 70 && i != 10 && i != 11 && i != 20: // a second passes before the outage is certain; parts begin empty
				t.Errorf("second %d: %d went, want about 80", i, n)
			}
		}
		if len(heard.all) != 8 {
			t.Fatalf("heard %d events, want away and back from each: %+v", len(heard.all), heard.all)
		}
		for i, e := range heard.all {
			switch {
			case e.Away && !errors.Is(e.Err, errDown):
				t.Errorf("went away for %v", e.Err)
			case !e.Away && heard.at[i] > back+time.Second:
				t.Errorf("resumed %v after the store was back", heard.at[i]-back)
			// Calls of the first second wait for the part. The store responds again within 0.42 s.
			case !e.Away && (e.Spent < 140 || e.Spent > 209):
				t.Errorf("spent %d alone, want about 9 to 10 seconds of 20", e.Spent)
			}
		}
	})
}

// A process that was busy holds most of the limit. During an outage it uses no more than that, for as long as
// the store reserves it, and longer unless Without.Refuse is set.
func TestAProcessKeepsToItsPart(t *testing.T) {
	for _, without := range []Without{{}, {Refuse: true}, {Share: 0.1}} {
		synctest.Test(t, func(t *testing.T) {
			l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
			s := &faulty{Store: NewMemory(nil)}
			var heard news
			fleets, regs := fleetOf(t, 4, s, l, Options{Outage: time.Minute, Without: without, Events: Events{Fallback: heard.hear}})
			count := func(d time.Duration) (n int, lack limit.Lack) {
				end := clock.System.Now() + d
				for clock.System.Now() < end {
					ok, v, _ := goOne(context.Background(), end, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
					if lack = v.Lack; ok {
						n++
					} else {
						time.Sleep(time.Millisecond)
					}
				}
				return n, lack
			}
			count(20 * time.Second)
			s.down.Store(true)
			part := int(fleets[0].Places()[0].Part * 100) // of 100 per second
			if part < 60 || part > 90 {
				t.Errorf("a busy process holds %d%%", part)
			}
			count(3 * time.Second)
			if n, _ := count(50 * time.Second); n < part*48 || n > part*50+part {
				t.Errorf("%+v: %d went in 50s, want its part of %d/s", without, n, part)
			}
			count(7 * time.Second)
			want := part
			switch {
			case without.Refuse:
				want = 0
			case without.Share > 0:
				want = 10
			}
			n, lack := count(20 * time.Second)
			if n < want*19 || n > want*20+want {
				t.Errorf("%+v: %d went in 20s after the outage, want %d/s", without, n, want)
			}
			if without.Refuse != (lack == limit.LacksStore) {
				t.Errorf("%+v: calls lack %v", without, lack)
			}
			if e := heard.all[len(heard.all)-1]; !e.Away || !e.Past {
				t.Errorf("%+v: the last event is %+v", without, e)
			}
			s.down.Store(false)
		})
	}
}

// A process that has not reached its store does not know the others. Its calls wait until their deadlines. Then
// it refuses them, or uses the configured share.
func TestAProcessThatIsNewNeverTakesAll(t *testing.T) {
	for _, c := range []struct {
		without Without
		least   int64
		most    int64
	}{{Without{}, 0, 0}, {Without{Refuse: true}, 0, 0}, {Without{Share: 0.1}, 80, 100}} {
		synctest.Test(t, func(t *testing.T) {
			l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
			s := &faulty{Store: NewMemory(nil)}
			s.down.Store(true)
			fleets, regs := fleetOf(t, 1, s, l, Options{Without: c.without})
			var went int64
			for begin := clock.System.Now(); clock.System.Now() < begin+10*time.Second; {
				before := clock.System.Now()
				ok, v, err := goOne(context.Background(), before+300*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
				switch took := clock.System.Now() - before; {
				case err != nil:
					t.Fatal(err)
				case ok:
					went++
				case took > 500*time.Millisecond:
					t.Errorf("%+v: refused after %v", c.without, took)
				case v.Lack != limit.LacksStore && c.most == 0:
					t.Errorf("%+v: refused for %q", c.without, v.Lack)
				}
				time.Sleep(time.Millisecond)
			}
			if went < c.least || went > c.most {
				t.Errorf("%+v: %d went in 10s, want from %d to %d", c.without, went, c.least, c.most)
			}
			if state := fleets[0].Places()[0].State; state != limit.StateNew {
				t.Errorf("%+v: it is %v", c.without, state)
			}
			s.down.Store(false)
			if ok, v, err := goOne(context.Background(), clock.System.Now()+3*time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1}); !ok || err != nil {
				t.Errorf("%+v: refused with the store there: %+v, %v", c.without, v, err)
			}
		})
	}
}

func TestALostAnswerIsNotSpentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 100}}
		s := &faulty{Store: NewMemory(nil)}
		_, regs := fleetOf(t, 1, s, l, Options{Lease: -1})
		n := 0
		for range 200 {
			s.dropped.Store(1)
			if ok, _, _ := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Key: "", Cost: 1}); ok {
				n++
			}
		}
		if n < 99 || n > 100 { // the guard withholds a little
			t.Errorf("%d of 100 went although each answer was lost once", n)
		}
	})
}
