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
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// sparing is a store that omits marks from responses without a grant.
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

// nearby is a store at a distance of a millisecond. It omits marks that it need not send.
func nearby() Store { return slow{sparing{NewMemory(nil)}, time.Millisecond} }

// tokensOf returns limits of n tokens per second.
func tokensOf(n int64) []limit.Limit {
	return []limit.Limit{
		{Name: "bucket", Unit: "tokens", Rate: bucket.Rate{Amount: n, Per: time.Second}},
		{Name: "rolling", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: n, Per: time.Second}},
		{Name: "fixed", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: n}, Every: bucket.Second},
	}
}

// A use is the usage of one call.
type use struct {
	at time.Duration
	n  int64
}

// reserving calls a registry's limit from many goroutines for d. Each call reserves three times its usage, and
// reports that 2ms later.
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

// overUsed returns by how much a window exceeds the limit at worst, and the usage after from.
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

// take takes the units of one limit.
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

// remaining uses the units that a bucket has left.
func remaining(t *testing.T, r *limit.Registry, l limit.Limit) (all []use) {
	for l.Shape == limit.Bucket {
		_, ok, err := take(context.Background(), r, 30, clock.System.Now())
		if err != nil {
			t.Error(err)
		}
		if !ok {
			break
		}
		all = append(all, use{clock.System.Now(), 30})
	}
	return all
}

// Other calls use the unused units of reservations, both waiting calls and calls that are refused immediately,
// in one process and in several.
func TestWhatComesBackIsUsed(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
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
	for _, r := range regs { // the last calls returned units of a bucket
		all = append(all, remaining(t, r, l)...)
	}
	worst, used := overUsed(l, all, begin+time.Second) // the burst has been used by then
	if worst > 0 {
		t.Errorf("%d over", worst)
	}
	share := float64(used) / (3 * l.PerSecond())
	if t.Logf("%.1f%% used", 100*share); share < 0.98 {
		t.Errorf("%.1f%% used, want 98%%", 100*share)
	}
}

// A call holds all units of a limit that hardly accrues any. When it reports that it used none, another call
// gets them, in its process or another one. That call waits, was just refused, or was refused long ago.
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

// reaches returns how long after their return units are used by another call. That call waits for them, or was
// refused this long before.
func reaches(t *testing.T, from, to *limit.Registry, after, patience time.Duration) time.Duration {
	all := from.Burst(clock.System.Now(), "")
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

// An overtaken store executes requests that return units later than others.
type overtaken struct{ Store }

func (s overtaken) Take(ctx context.Context, a *Ask) error {
	time.Sleep(10 * time.Millisecond)
	if slices.ContainsFunc(a.Settle, func(s Settlement) bool { return s.Back > 0 }) {
		time.Sleep(15 * time.Millisecond)
	}
	err := s.Store.Take(ctx, a)
	time.Sleep(10 * time.Millisecond)
	return err
}

// A call that waits for less than the limit requires gets units that its process has just returned, even if its
// request overtakes the one that returns them.
func TestACallGetsUnitsThatAnotherRequestReturns(t *testing.T) {
	for _, patience := range []time.Duration{0, 30 * time.Millisecond, time.Minute} {
		synctest.Test(t, func(t *testing.T) { overtakes(t, patience) })
	}
}

func overtakes(t *testing.T, patience time.Duration) {
	fleets, regs := fleetOf(t, 1, overtaken{NewMemory(nil)}, limit.Limit{Name: "all", Unit: "tokens", Rate: bucket.Rate{Amount: 100, Per: time.Hour, Burst: 100}}, Options{})
	users, err := limit.NewShared(clock.System.Now(), limit.Limit{Name: "user", Scope: "user", Rate: bucket.Rate{Amount: 100, Per: time.Hour}}, fleets[0].Group("up"))
	if err != nil {
		t.Fatal(err)
	}
	all := regs[0].Burst(clock.System.Now(), "")
	held, ok, err := take(t.Context(), regs[0], all, clock.System.Now()+time.Second)
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	held.Settle(clock.System.Now(), map[string]int64{"tokens": 0})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if _, ok, err := take(t.Context(), regs[0], 1, clock.System.Now()+time.Second); !ok || err != nil {
			t.Errorf("the call whose request returns the units: %v, %v", ok, err)
		}
	})
	time.Sleep(time.Millisecond)
	ok, v, err := goOne(t.Context(), clock.System.Now()+patience, limit.Charge{Registry: regs[0], Cost: all / 2}, limit.Charge{Registry: users, Key: "u", Cost: 1})
	if !ok || err != nil {
		t.Errorf("patience %v: %+v, %v", patience, v, err)
	}
}

// Many units return before the store can get the report. Merging them creates no units. If they are of few grants,
// it loses none of units with a high position in a bucket.
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
		calls := []int{1, 40}[r.IntN(2)] // of one grant, on average
		n := int64(0)
		var all []Settlement
		for range 1 + r.IntN(3*mostPending) {
			if r.IntN(calls) == 0 {
				now += r.Int64N(500)
			}
			if r.IntN(64) == 0 { // all units used so far may have accrued again
				now += r.Int64N(100_000)
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
		case calls == 40 && below > n && folded.left(allIn(now), rule) < apart.left(allIn(now), rule):
			t.Fatalf("seed %d, %d: %v: %d left, want %d", seed, i, l, folded.left(allIn(now), rule), apart.left(allIn(now), rule))
		}
	}
}

// Units that a driver puts back while it serves its line may be the units that the line lacks.
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

// A call that costs more than any block of its process is served immediately, if these blocks and the store
// have enough units.
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

// unreached is a store that is unreachable at times.
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

// Units of a quota that calls return during an outage return to the store after it. Units in the request that
// detected the outage do not, since the store may have executed that request.
func TestWhatComesBackInAnOutageIsToldAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unreached{Store: nearby()}
		l := limit.Limit{Name: "l", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day}
		_, regs := fleetOf(t, 1, s, l, Options{Lease: -1, Freezes: true}) // no standby
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
			_, _, _ = take(t.Context(), r, 90_000, clock.System.Now()+time.Second) // asks the store, which fails
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
