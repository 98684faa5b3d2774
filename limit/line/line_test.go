package line

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

const ms = time.Millisecond

var errOpen = errors.New("open")

// rules are the rules in tests.
type rules struct {
	wait, stands, longer time.Duration
}

func (r *rules) Wait(_, _ time.Duration, _ bool) time.Duration             { return r.wait }
func (r *rules) Stands(_, waited time.Duration, _ bool) bool               { return waited > r.stands }
func (r *rules) Longer(_, came time.Duration, _ int, _ bool) time.Duration { return came + r.longer }

// A shop has a number of places. One more becomes free by itself at an instant.
type shop struct {
	*Line
	mu     sync.Mutex
	free   int
	opens  time.Duration // an instant; 0 means never
	served []string
}

func newShop(r rules) *shop { return &shop{Line: New(clock.System, &r, [Priorities]int{})} }

type buyer struct {
	*shop
	name   string
	refuse bool
}

func (b *buyer) Ask(now, _ time.Duration) Step {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.refuse:
		return Step{Kind: Refuse}
	case b.free > 0:
		b.free--
	case b.opens > 0 && now >= b.opens:
		b.opens = 0
	case b.opens > 0:
		return Step{Kind: Wait, For: b.opens - now}
	default:
		return Step{Kind: Wait, For: time.Hour}
	}
	b.served = append(b.served, b.name)
	return Step{Kind: Go}
}

func (s *shop) gives(n int) {
	s.mu.Lock()
	s.free += n
	s.mu.Unlock()
	s.Kick()
}

func (s *shop) buys(ctx context.Context, name string, patience time.Duration) (Place, error) {
	now := clock.System.Now()
	return s.Join(ctx, now, &Call{Asker: &buyer{shop: s, name: name}, Until: now + patience})
}

func (s *shop) empty(t *testing.T) {
	t.Helper()
	if s.Waiting() != 0 || s.order.n != 0 || s.driver != nil || len(s.all.flows) != 0 {
		t.Errorf("%d wait, driver %v", s.Waiting(), s.driver)
	}
}

var patient = rules{wait: time.Hour, stands: time.Hour}

func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(patient)
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d"} {
			wg.Go(func() { _, _ = s.buys(t.Context(), name, time.Minute) })
			synctest.Wait()
		}
		s.gives(2)
		synctest.Wait()
		if !slices.Equal(s.served, []string{"a", "b"}) || s.Waiting() != 2 {
			t.Errorf("served %v, %d wait", s.served, s.Waiting())
		}
		s.gives(2)
		wg.Wait()
		s.empty(t)
	})
}

func TestNewestFirstOnceAQueueStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(rules{wait: time.Hour, stands: 500 * ms})
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			wg.Go(func() { _, _ = s.buys(t.Context(), name, time.Minute) })
			synctest.Wait()
		}
		time.Sleep(501 * ms)
		s.gives(1)
		synctest.Wait()
		if !slices.Equal(s.served, []string{"c"}) {
			t.Errorf("served %v, want the newest", s.served)
		}
		s.gives(2)
		wg.Wait()
		s.empty(t)
	})
}

func TestWaitsEndInTime(t *testing.T) {
	for _, c := range []struct {
		name     string
		rules    rules
		patience time.Duration
		want     time.Duration
	}{
		{"the rules'", rules{wait: 100 * ms}, time.Minute, 100 * ms},
		{"the caller's", rules{wait: time.Minute}, 200 * ms, 200 * ms},
		{"longer by the rules", rules{wait: 100 * ms, longer: 3 * time.Second}, time.Minute, 3 * time.Second},
		{"longer, but not than the caller's", rules{wait: 100 * ms, longer: 3 * time.Second}, time.Second, time.Second},
		{"none", rules{}, time.Minute, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(c.rules)
				begin := time.Now()
				p, err := s.buys(t.Context(), "a", c.patience)
				if took := time.Since(begin); !errors.Is(err, ErrLate) || took != c.want || p.Place != 1 || p.Waiting != 1 {
					t.Errorf("%v, %+v after %v, want %v", err, p, took, c.want)
				}
				s.empty(t)
			})
		})
	}
}

func TestWhatComesWithTimeIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(patient)
		begin := time.Now()
		s.opens = clock.System.Now() + 3*time.Second
		var wg sync.WaitGroup
		ctx, leave := context.WithCancel(t.Context())
		wg.Go(func() { // the driver, which leaves
			if _, err := s.buys(ctx, "a", time.Minute); !errors.Is(err, context.Canceled) {
				t.Errorf("the driver: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := s.buys(t.Context(), "b", time.Minute); err != nil || time.Since(begin) != 3*time.Second {
				t.Errorf("the second: %v after %v", err, time.Since(begin))
			}
		})
		time.Sleep(time.Second)
		leave()
		wg.Wait()
		s.empty(t)
	})
}

func TestSoonerThanItWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(patient)
		begin := time.Now()
		s.opens = clock.System.Now() + time.Minute
		time.AfterFunc(time.Second, func() {
			s.mu.Lock()
			s.opens = clock.System.Now() + time.Second
			s.mu.Unlock()
			s.Kick()
		})
		if _, err := s.buys(t.Context(), "a", time.Hour); err != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestFailIsHeardAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(patient)
		begin := time.Now()
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			wg.Go(func() {
				_, err := s.buys(t.Context(), name, time.Minute)
				if took := time.Since(begin); name != "b" && (!errors.Is(err, errOpen) || took != time.Second) || name == "b" && err != nil {
					t.Errorf("%s: %v after %v", name, err, took)
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Second)
		s.Fail(errOpen, func(a Asker) bool { return a.(*buyer).name != "b" })
		time.Sleep(time.Second)
		s.gives(1)
		wg.Wait()
		s.empty(t)
	})
}

func TestRefusedAndFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(patient)
		now := clock.System.Now()
		if _, err := s.Join(t.Context(), now, &Call{Asker: &buyer{shop: s, refuse: true}, Until: now + time.Second}); !errors.Is(err, ErrRefused) {
			t.Errorf("refused: %v", err)
		}
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range Most {
			wg.Go(func() { _, _ = s.buys(ctx, "x", time.Minute) })
		}
		synctest.Wait()
		if p, err := s.buys(ctx, "x", time.Minute); !errors.Is(err, ErrFull) || p.Place != Most+1 {
			t.Errorf("one too many: %+v, %v", p, err)
		}
		leave()
		wg.Wait()
		s.empty(t)
	})
}

// Whatever happens, each wait ends in time, returned places are used while calls wait, and nothing is left behind.
func TestPropertyEveryWaitEnds(t *testing.T) {
	for seed := range uint64(500) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := newShop(rules{wait: time.Duration(r.IntN(500)) * ms, stands: time.Duration(r.IntN(300)) * ms, longer: time.Duration(r.IntN(200)) * ms})
			var wg sync.WaitGroup
			var mu sync.Mutex
			went := 0
			for range 30 + r.IntN(30) {
				start, life, leaves := time.Duration(r.IntN(1000))*ms, time.Duration(r.IntN(600))*ms, time.Duration(r.IntN(900))*ms
				wg.Go(func() {
					time.Sleep(start)
					ctx, cancel := context.WithTimeout(t.Context(), leaves)
					defer cancel()
					begin := time.Now()
					_, err := s.buys(ctx, "x", life)
					if took := time.Since(begin); took > min(life, leaves) {
						t.Errorf("seed %d: waited %v, had %v", seed, took, min(life, leaves))
					}
					if err == nil {
						mu.Lock()
						went++
						mu.Unlock()
					}
				})
			}
			given := 0
			for range 40 {
				time.Sleep(time.Duration(r.IntN(60)) * ms)
				switch r.IntN(5) {
				case 0:
					s.Fail(errOpen, func(Asker) bool { return r.IntN(3) == 0 })
				case 1:
					s.mu.Lock()
					if s.opens == 0 {
						s.opens = clock.System.Now() + time.Duration(r.IntN(100))*ms
						given++
					}
					s.mu.Unlock()
					s.Kick()
				default:
					given++
					s.gives(1)
				}
				synctest.Wait()
				if s.mu.Lock(); s.free > 0 && s.Waiting() > 0 {
					t.Errorf("seed %d: %d wait for %d places", seed, s.Waiting(), s.free)
				}
				s.mu.Unlock()
			}
			wg.Wait()
			left := s.free
			if s.opens > 0 {
				left++
			}
			if went+left != given {
				t.Errorf("seed %d: %d went of %d, %d are left", seed, went, given, left)
			}
			s.empty(t)
		})
		if t.Failed() {
			return
		}
	}
}
