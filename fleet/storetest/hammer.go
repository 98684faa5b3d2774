package storetest

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit/bucket"
)

const (
	clients    = 3
	goroutines = 8 // per client
)

// A spent is units that the store granted at an instant of its clock, when the caller could use them.
type spent struct {
	at int64 // microseconds
	n  int64
}

// A load is many goroutines that take as many units as they get, until the store's clock reaches end.
type load struct {
	w     *world
	ask   func(rng *rand.Rand, now time.Time) *fleet.Ask
	heard func(a *fleet.Ask) // called for each answer, never concurrently
	begin time.Time
	end   time.Time

	mu    sync.Mutex
	asked []spent // requested copies, granted or not
}

func (w *world) hammerWith(ask func(rng *rand.Rand, now time.Time) *fleet.Ask, heard func(a *fleet.Ask)) *load {
	w.Helper()
	begin := w.now()
	l := &load{w: w, ask: ask, heard: heard, begin: begin, end: begin.Add(w.hammer)}
	workers := make([]*worker, 0, clients*goroutines)
	for range clients {
		c := w.another()
		for range goroutines {
			seed := rand.Uint64()
			workers = append(workers, &worker{l, c.another(), rand.New(rand.NewPCG(seed, 1)), begin})
		}
	}
	if w.advance != nil {
		l.rounds(workers)
	} else {
		l.free(workers)
	}
	return l
}

type worker struct {
	l   *load
	c   *client
	rng *rand.Rand
	now time.Time // the store's clock in the latest answer
}

// once sends one ask and returns the wait that the store named.
func (k *worker) once() (rest time.Duration, ok bool) {
	a := k.l.ask(k.rng, k.now)
	a.Group, a.ID, a.Lane = k.l.w.group, fresh(), k.c.lane
	if err := k.c.try(a); errors.Is(err, fleet.ErrWindow) {
		k.now = a.Now
		return 0, true
	} else if err != nil {
		k.l.w.Errorf("take: %v", err)
		return 0, false
	}
	k.now = a.Now
	k.l.mu.Lock()
	k.l.asked = append(k.l.asked, spent{a.Now.UnixMicro(), a.Copies})
	k.l.heard(a)
	k.l.mu.Unlock()
	if a.Granted == 0 {
		rest = longestWait(a)
	}
	return rest, true
}

// rounds lets all workers ask at the same instant, then advances the clock a little, until the load ends.
func (l *load) rounds(workers []*worker) {
	for l.w.now().Before(l.end) {
		var wg sync.WaitGroup
		for _, k := range workers {
			wg.Go(func() { k.once() })
		}
		wg.Wait()
		if l.w.Failed() {
			return
		}
		l.w.advance(time.Duration(rand.Int64N(int64(4 * time.Millisecond))))
	}
}

// free lets all workers ask as fast as the store answers. A refused worker waits as long as the store says, at most
// a millisecond.
func (l *load) free(workers []*worker) {
	var wg sync.WaitGroup
	for _, k := range workers {
		wg.Go(func() {
			for k.now.Before(l.end) {
				rest, ok := k.once()
				if !ok {
					return
				}
				time.Sleep(min(rest, time.Millisecond))
			}
		})
	}
	wg.Wait()
}

// used returns the units granted to claim i of an answer.
func used(a *fleet.Ask, i int) int64 { return a.Granted*a.Claims[i].Cost + a.Grants[i].Extra }

// record returns a function that adds the grants of an answer to grants, by the name of the limit.
func record(grants map[string][]spent) func(a *fleet.Ask) {
	return func(a *fleet.Ask) {
		for i, k := range a.Claims {
			if n := used(a, i); n > 0 {
				grants[k.Rule.Name] = append(grants[k.Rule.Name], spent{a.Now.UnixMicro(), n})
			}
		}
	}
}

func sorted(all []spent) (total int64) {
	slices.SortFunc(all, func(a, b spent) int { return cmp.Compare(a.at, b.at) })
	for _, s := range all {
		total += s.n
	}
	return total
}

// wantBucket checks windows of every length. The rate is amount/per units per microsecond. It computes an exact
// leaky bucket in integers.
func (w *world) wantBucket(all []spent, amount, per, burst int64) (total int64) {
	w.Helper()
	total = sorted(all)
	var level, at int64
	for _, s := range all {
		level = max(0, level-amount*(s.at-at)) + s.n*per
		at = s.at
		if over := level - burst*per; over > amount { // one microsecond's worth
			w.Fatalf("%.3f units over the limit at %d us", float64(over)/float64(per), s.at)
		}
	}
	return total
}

// wantRolling checks every window of length per.
func (w *world) wantRolling(all []spent, amount int64, per time.Duration) (total int64) {
	w.Helper()
	total = sorted(all)
	var sum int64
	first := 0
	for _, s := range all {
		for sum += s.n; s.at-all[first].at >= per.Microseconds(); first++ {
			sum -= all[first].n
		}
		if sum > amount {
			w.Fatalf("%d units in the %v before %d us, want %d at most", sum, per, s.at, amount)
		}
	}
	return total
}

func (w *world) wantFixed(all []spent, s *shape) {
	w.Helper()
	sorted(all)
	sums := make(map[int64]int64)
	for _, g := range all {
		sums[s.windows(time.UnixMicro(g.at)).Start.UnixMicro()] += g.n
	}
	for start, n := range sums {
		if n > s.full {
			w.Errorf("%d units in the window that begins at %d us, want %d at most", n, start, s.full)
		}
	}
}

// wantUsed checks that nearly all units that the limit had at each ask were granted. has returns the units
// available at an instant, and goes records the units spent.
func (l *load) wantUsed(total int64, has func(at int64) int64, goes func(at, n int64)) {
	l.w.Helper()
	sorted(l.asked)
	could := int64(0)
	for _, a := range l.asked {
		n := min(a.n, has(a.at))
		goes(a.at, n)
		could += n
	}
	l.w.Logf("%d of %d units used", total, could)
	least := 0.98
	if l.w.advance == nil {
		least = 0.5 // in real time, a busy machine delays the workers
	}
	if share := float64(total) / float64(could); share < least {
		l.w.Errorf("%d of %d units used, %.1f%%, want %.0f%%", total, could, 100*share, 100*least)
	}
}

// greedy returns a function that asks for a few copies of a call, and sometimes for extra units.
func greedy(s *shape) func(rng *rand.Rand, now time.Time) *fleet.Ask {
	return func(rng *rand.Rand, now time.Time) *fleet.Ask {
		k := s.claim(now, 1)
		if rng.IntN(4) == 0 {
			k.Extra = rng.Int64N(5)
		}
		return &fleet.Ask{Copies: 1 + rng.Int64N(3), Claims: []fleet.Claim{k}}
	}
}

func hammerBucket(w *world) { w.hammerRate(200, 20) }
func hammerFast(w *world)   { w.hammerRate(1000, 50) }

func (w *world) hammerRate(perSecond, burst int64) {
	grants := make(map[string][]spent)
	l := w.hammerWith(greedy(bucketOf("bucket", perSecond, time.Second, burst)), record(grants))
	total := w.wantBucket(grants["bucket"], perSecond, 1e6, burst)
	var level, last int64
	l.wantUsed(total, func(at int64) int64 {
		level, last = max(0, level-perSecond*(at-last)), at
		return (burst*1e6 - level) / 1e6
	}, func(_, n int64) { level += n * 1e6 })
}

// hammerRolling expects the ring to count a unit up to one slot longer than the window.
func hammerRolling(w *world) {
	grants := make(map[string][]spent)
	per := w.hammer / 5
	l := w.hammerWith(greedy(rollingOf("rolling", 50, per)), record(grants))
	total := w.wantRolling(grants["rolling"], 50, per)
	ring := bucket.RingOf(bucket.Window{Amount: 50, Per: per})
	var went []spent
	sum := int64(0)
	l.wantUsed(total, func(at int64) int64 {
		for len(went) > 0 && at >= ring.Leaves(ring.Slot(went[0].at), ring.Grain) {
			sum -= went[0].n
			went = went[1:]
		}
		return 50 - sum
	}, func(at, n int64) { sum, went = sum+n, append(went, spent{at, n}) })
}

func hammerFixed(w *world) {
	grants := make(map[string][]spent)
	s := w.fixedOf("fixed", 50, w.hammer/5)
	l := w.hammerWith(greedy(s), record(grants))
	w.wantFixed(grants["fixed"], s)
	went := make(map[int64]int64)
	window := func(at int64) int64 { return s.windows(time.UnixMicro(at)).Start.UnixMicro() }
	l.wantUsed(sorted(grants["fixed"]), func(at int64) int64 { return 50 - went[window(at)] }, func(at, n int64) { went[window(at)] += n })
}

// hammerSeveral charges each call to three limits with different costs. The charges must agree.
func hammerSeveral(w *world) {
	per := w.hammer / 5
	b, r, f := bucketOf("bucket", 30, per, 30), rollingOf("rolling", 70, per), w.fixedOf("fixed", 120, per)
	var copies int64
	grants := make(map[string][]spent)
	keep := record(grants)
	w.hammerWith(func(rng *rand.Rand, now time.Time) *fleet.Ask {
		claims := []fleet.Claim{b.claim(now, 1), r.claim(now, 2), f.claim(now, 3)}
		rng.Shuffle(3, func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
		return &fleet.Ask{Copies: 1 + rng.Int64N(4), Claims: claims}
	}, func(a *fleet.Ask) { copies += a.Granted; keep(a) })
	total := w.wantBucket(grants["bucket"], 30, per.Microseconds(), 30)
	if rolled := w.wantRolling(grants["rolling"], 70, per); total != copies || rolled != 2*copies {
		w.Errorf("%d copies, %d and %d units", copies, total, rolled)
	}
	w.wantFixed(grants["fixed"], f)
}

// hammerReturns returns half of the granted units unused, some of them late. The units that are kept must stay
// within the limit.
func hammerReturns(w *world) {
	s := bucketOf("bucket", 300, time.Second, 60)
	type unused struct {
		mark fleet.Mark
		n    int64
	}
	var mu sync.Mutex
	var back []unused
	kept := make(map[int64]int64) // units by instant
	w.hammerWith(func(rng *rand.Rand, now time.Time) *fleet.Ask {
		a := &fleet.Ask{Copies: 1 + rng.Int64N(6), Claims: []fleet.Claim{s.claim(now, 1)}}
		mu.Lock()
		defer mu.Unlock()
		if n := len(back); n > 0 && rng.IntN(3) > 0 {
			i := rng.IntN(n)
			a.Settle = []fleet.Settlement{s.settlement(now, back[i].n, back[i].mark)}
			back[i] = back[n-1]
			back = back[:n-1]
		}
		return a
	}, func(a *fleet.Ask) {
		n := a.Granted / 2
		kept[a.Now.UnixMicro()] += a.Granted - n
		if mu.Lock(); n > 0 {
			back = append(back, unused{a.Grants[0].Mark, n})
		}
		mu.Unlock()
	})
	var all []spent
	for at, n := range kept {
		all = append(all, spent{at, n})
	}
	w.Logf("%d units stayed", w.wantBucket(all, 300, 1e6, 60))
}
