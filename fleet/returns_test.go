package fleet

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// sparing is a store that names no unit where it has granted none.
type sparing struct{ Store }

func (s sparing) Take(ctx context.Context, a *Ask) error {
	err := s.Store.Take(ctx, a)
	for i := range a.Grants {
		if a.Granted*a.Claims[i].Cost+a.Grants[i].Extra == 0 {
			a.Grants[i].Mark = Mark{}
		}
	}
	return err
}

// nearby is a store a millisecond away. It names no more than it must.
func nearby() Store { return slow{sparing{NewMemory(nil)}, time.Millisecond} }

// tokensOf are limits of so many tokens a second.
func tokensOf(n int64) []limit.Limit {
	return []limit.Limit{
		{Name: "bucket", Unit: "tokens", Rate: bucket.Rate{Amount: n, Per: time.Second}},
		{Name: "rolling", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: n, Per: time.Second}},
		{Name: "fixed", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: n}, Every: bucket.Second},
	}
}

// A use is what one call used.
type use struct {
	at time.Duration
	n  int64
}

// reserving calls a registry's limit from many goroutines for d: each call reserves three
// times of what it uses, and says so 2ms later.
func reserving(t *testing.T, r *limit.Registry, d, patience time.Duration) (all []use) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := clock.System.Now() + d
	for range 16 {
		wg.Go(func() {
			for clock.System.Now() < end {
				p, ok, err := take(context.Background(), r, 90, min(end, clock.System.Now()+patience))
				if err != nil {
					t.Error(err)
				}
				at := clock.System.Now()
				time.Sleep(2 * time.Millisecond)
				if ok {
					p.Settle(clock.System.Now(), map[string]int64{"tokens": 30})
					mu.Lock()
					all = append(all, use{at, 30})
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return all
}

// overUsed is by how much any window has more than the limit allows, and what was used
// after from.
func overUsed(l limit.Limit, all []use, from time.Duration) (worst, used int64) {
	slices.SortFunc(all, func(a, b use) int { return cmp.Compare(a.at, b.at) })
	for i, a := range all {
		if a.at >= from {
			used += a.n
		}
		sum := int64(0)
		for _, b := range all[i:] {
			if l.Shape == limit.Rolling && b.at-a.at >= l.Per || l.Shape == limit.Calendar && !sameSecond(a.at, b.at) {
				break
			}
			most := l.Amount
			if l.Shape == limit.Bucket {
				most = l.Full() + int64(l.PerSecond()*(b.at-a.at).Seconds()+1e-6)
			}
			sum += b.n
			worst = max(worst, sum-most)
		}
	}
	return worst, used
}

func sameSecond(a, b time.Duration) bool {
	return clock.System.Wall(a).Unix() == clock.System.Wall(b).Unix()
}

// take takes a cost by itself.
func take(ctx context.Context, r *limit.Registry, cost int64, until time.Duration) (*limit.Charges, bool, error) {
	p := &limit.Charges{}
	p.Add(limit.Charge{Registry: r, Key: "", Cost: cost})
	now := clock.System.Now()
	v := p.Take(now)
	for p.Asks(v, until-now) {
		var err error
		if v, err = p.Fetch(ctx, now, until, limit.Normal); err != nil || !v.OK {
			return p, false, err
		}
		now = clock.System.Now()
		v = p.Take(now)
	}
	return p, v.OK, nil
}

// What calls reserve and do not use is used by others, whether these wait for it or are
// refused at once, in one process or in several.
func TestWhatComesBackIsUsed(t *testing.T) {
	for _, l := range tokensOf(5000) {
		for _, o := range []Options{{}, {Lease: -1}} {
			for _, processes := range []int{1, 4} {
				for _, patience := range []time.Duration{0, time.Second} {
					name := fmt.Sprintf("%s/lease %v/%d processes/patience %v", l.Name, o.Lease, processes, patience)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { usesReturns(t, l, o, processes, patience) })
					})
				}
			}
		}
	}
}

func usesReturns(t *testing.T, l limit.Limit, o Options, processes int, patience time.Duration) {
	_, regs := fleetOf(t, processes, nearby(), l, o)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []use
	begin := clock.System.Now()
	for _, r := range regs {
		wg.Go(func() {
			some := reserving(t, r, 4*time.Second, patience)
			mu.Lock()
			all = append(all, some...)
			mu.Unlock()
		})
	}
	wg.Wait()
	worst, used := overUsed(l, all, begin+time.Second) // the burst has gone by then
	if worst > 0 {
		t.Errorf("%d over", worst)
	}
	share := float64(used) / (3 * l.PerSecond())
	if t.Logf("%.1f%% used", 100*share); share < 0.98 {
		t.Errorf("%.1f%% used, want 98%%", 100*share)
	}
}

// A call holds all of a limit that gets nothing back by itself. When it says that it used
// none of it, another goes, of its process or of another one: whoever waits for it, was
// refused a moment before, or was refused long ago.
func TestWhatComesBackReachesWhoWantsIt(t *testing.T) {
	limits := []limit.Limit{
		{Name: "bucket", Unit: "tokens", Rate: bucket.Rate{Amount: 100, Per: time.Hour}},
		{Name: "rolling", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: time.Minute}},
		{Name: "fixed", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Day},
	}
	for _, l := range limits {
		for other, most := range []time.Duration{15 * time.Millisecond, 300 * time.Millisecond} {
			for _, c := range []struct {
				name            string
				after, patience time.Duration
			}{
				{"waits", 0, 48 * time.Hour},
				{"has waited long", 10 * time.Second, 48 * time.Hour},
				{"was just refused", 0, 0},
				{"was refused long ago", 5 * time.Second, 0},
			} {
				t.Run(fmt.Sprintf("%s/process %d/%s", l.Name, other, c.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						_, regs := fleetOf(t, 2, nearby(), l, Options{})
						if d := reaches(t, regs[0], regs[other], c.after, c.patience); d > most {
							t.Errorf("after %v, want %v at most", d, most)
						} else {
							t.Logf("after %v", d)
						}
					})
				})
			}
		}
	}
}

// reaches is how long after it came back to one process another goes with it. The other
// waits for it, or was refused so long before.
func reaches(t *testing.T, from, to *limit.Registry, after, patience time.Duration) time.Duration {
	all := from.Most(clock.System.Now(), "")
	held, ok, err := take(context.Background(), from, all, clock.System.Now())
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	var gone atomic.Int64
	done := make(chan struct{})
	go func(after time.Duration) {
		defer close(done)
		for {
			_, ok, err := take(context.Background(), to, all, clock.System.Now()+patience)
			if gone.Store(int64(clock.System.Now())); ok || err != nil {
				return
			}
			time.Sleep(max(after, time.Millisecond))
			after = 0
		}
	}(after)
	time.Sleep(max(after, 20*time.Millisecond))
	back := clock.System.Now()
	held.Settle(back, map[string]int64{"tokens": 0})
	<-done
	return time.Duration(gone.Load()) - back
}

// However much comes back before the store can be told, what is folded makes no more of
// it than there was, and of units that stand high in a bucket nothing is lost.
func TestFoldedReturnsMakeNothing(t *testing.T) {
	seed := rand.Uint64()
	for i := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, i))
		l := tokensOf(5000)[r.IntN(3)]
		f := New(NewMemory(nil), Options{})
		reg, err := limit.NewShared(0, l, f.Group("g"))
		if err != nil {
			t.Fatal(err)
		}
		p := leaseOf(reg.Get(0, "k"))
		rule, now := &p.spec().rule, time.Now().UnixMicro()
		w := p.spec().windows(time.UnixMicro(now))
		folded, apart := new(Cell), new(Cell)
		below := r.Int64N(2) * 3000 // units that stay, below all others
		for _, c := range []*Cell{folded, apart} {
			c.turnTo(allIn(now), rule, &w)
			c.add(allIn(now), rule, below)
		}
		n := int64(0)
		var all []Settlement
		for range 1 + r.IntN(3*mostPending) {
			if r.IntN(40) == 0 {
				now += r.Int64N(20_000)
			}
			cost := 1 + r.Int64N(5)
			for _, c := range []*Cell{folded, apart} {
				c.turnTo(allIn(now), rule, &w)
				c.add(allIn(now), rule, cost)
			}
			back := Settlement{Rule: rule, Key: "k", Windows: w, Back: r.Int64N(cost + 1), Mark: apart.mark(rule)}
			n += back.Back
			all = append(all, back)
			p.settle(0, back)
		}
		for _, s := range all {
			apart.Settle(allIn(now), &s)
		}
		for _, s := range p.pending {
			s.Windows = w
			folded.Settle(allIn(now), &s)
		}
		switch {
		case folded.left(allIn(now), rule) > apart.left(allIn(now), rule):
			t.Fatalf("seed %d, %d: %v: %d left, want %d at most", seed, i, l, folded.left(allIn(now), rule), apart.left(allIn(now), rule))
		case len(p.pending) > mostPending:
			t.Fatalf("seed %d, %d: %d are pending", seed, i, len(p.pending))
		case below > n && folded.left(allIn(now), rule) < apart.left(allIn(now), rule):
			t.Fatalf("seed %d, %d: %v: %d left, want %d", seed, i, l, folded.left(allIn(now), rule), apart.left(allIn(now), rule))
		}
	}
}

// What a driver that serves its line puts back may be what the line is short of.
func TestPuttingBackTakesNoQueue(t *testing.T) {
	f := New(NewMemory(nil), Options{})
	r, err := limit.NewShared(0, tokensOf(5000)[0], f.Group("g"))
	if err != nil {
		t.Fatal(err)
	}
	p := leaseOf(r.Get(0, "k"))
	q := f.Group("g").queue([]*lease{p})
	p.isShort(q, 5)
	q.mu.Lock()
	done := make(chan struct{})
	go func() {
		p.Back(0, limit.Turn{Turn: bucket.Turn{Place: 10, Low: 10, Cost: 5}}, 5)
		close(done)
	}()
	<-done
	q.mu.Unlock()
	if !q.enough.Load() {
		t.Error("the queue has not heard that enough came back")
	}
}

// A call that costs more than any block that its process holds, but not more than these
// and what the store has, goes at once.
func TestBlocksTooSmallForACallAreGivenBackForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "fixed", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1000}, Every: bucket.Day}
		fleets, regs := fleetOf(t, 1, nearby(), l, Options{})
		for range 200 {
			if _, ok, err := take(context.Background(), regs[0], 1, clock.System.Now()); !ok || err != nil {
				t.Fatalf("%v, %v", ok, err)
			}
		}
		held := fleets[0].Held()["up"]
		begin := clock.System.Now()
		_, ok, err := take(context.Background(), regs[0], 800, begin+24*time.Hour)
		if d := clock.System.Now() - begin; held == 0 || !ok || err != nil || d > 20*time.Millisecond {
			t.Errorf("%d were held: %v after %v, %v", held, ok, d, err)
		}
	})
}

// unreached is a store that cannot be reached at times.
type unreached struct {
	Store
	away atomic.Bool
}

func (s *unreached) Take(ctx context.Context, a *Ask) error {
	if s.away.Load() {
		return errCut
	}
	return s.Store.Take(ctx, a)
}

func (s *unreached) Beat(ctx context.Context, b *Beat) (Standing, error) {
	if s.away.Load() {
		return Standing{}, errCut
	}
	return s.Store.Beat(ctx, b)
}

// What calls give back of a quota while the store is away comes back when the store does, but for what went
// with the ask by which the process noticed: it is not known whether the store has heard that.
func TestWhatComesBackInAnOutageIsToldAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unreached{Store: nearby()}
		l := limit.Limit{Name: "l", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day}
		_, regs := fleetOf(t, 1, s, l, Options{Lease: -1, Freezes: true}) // nothing stands by
		r := regs[0]
		goes := func() *limit.Charges {
			p, ok, err := take(t.Context(), r, 100, clock.System.Now()+5*time.Second)
			if err != nil || !ok {
				t.Fatalf("%v, %v", ok, err)
			}
			return p
		}
		var under []*limit.Charges
		for range 20 {
			under = append(under, goes())
			time.Sleep(50 * time.Millisecond)
		}
		s.away.Store(true)
		for _, p := range under {
			p.Settle(clock.System.Now(), map[string]int64{"tokens": 10})
			_, _, _ = take(t.Context(), r, 90_000, clock.System.Now()+time.Second) // asks, in vain
			time.Sleep(time.Second)
		}
		s.away.Store(false)
		time.Sleep(10 * time.Second)
		p := goes()
		defer p.Drop(clock.System.Now())
		if left, want := p.Look(clock.System.Now(), 0).Left+100, int64(100_000-20*10); left > want || left < want-90 {
			t.Errorf("%d left, want %d, or 90 less for what one ask took with it", left, want)
		}
	})
}
