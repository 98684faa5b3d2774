package line

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A pair is a call that needs two sources together, and waits in the queue of the source that makes it wait.
type pair struct {
	of    [2]*source
	keys  [2]string
	cost  time.Duration
	at    int
	moves int
	away  bool // it gets its units elsewhere
	stays bool // it never moves, and gives up instead
}

func (p *pair) Ask(now, since time.Duration) Step {
	if p.away {
		return Step{Kind: Away, Room: 2}
	}
	wait := [2]time.Duration{}
	for i, s := range p.of {
		s.mu.Lock()
		wait[i] = max(0, max(s.booked, now-s.depth)+p.cost-now)
		s.mu.Unlock()
	}
	other := 1 - p.at
	switch {
	case wait[other] > wait[p.at] && p.stays:
		return Step{Kind: Refuse}
	case wait[other] > wait[p.at]:
		p.moves++
		p.at = other
		return Step{Kind: Move, Spot: Spot{Key: p.keys[other], Cost: p.cost}}
	case wait[p.at] > 0:
		return Step{Kind: Wait, For: wait[p.at]}
	}
	for i, s := range p.of {
		from := now
		if i == p.at {
			from = since
		}
		s.take(now, from, "", p.cost)
	}
	return Step{Kind: Go}
}

// A wanderer moves as its steps say, and stays where the last one leads.
type wanderer []Step

func (w *wanderer) Ask(time.Duration, time.Duration) Step {
	s := (*w)[0]
	if len(*w) > 1 {
		*w = (*w)[1:]
	}
	return s
}

// A call that returns to a queue that exists only for its reservation is found there.
func TestWhoComesBackToALineIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := NewLines(clock.System, Config{})
		w := &wanderer{
			{Kind: Move, For: time.Second, Spot: Spot{Key: "b", Cost: 1}},
			{Kind: Wait, For: time.Second},
			{Kind: Move, For: time.Second, Spot: Spot{Key: "a", Cost: 1}},
			{Kind: Wait, For: time.Hour},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		now := clock.System.Now()
		wg.Go(func() {
			_, _ = lines.Wait(ctx, now, &Call{Asker: w, Until: now + 2*time.Hour}, Spot{Key: "a", Cost: 1})
		})
		time.Sleep(2 * time.Second)
		if _, ok := lines.Busy("a"); !ok {
			t.Error("nobody stands there")
		}
		cancel()
		wg.Wait()
	})
}

// With calls that move, leave, go away and fail, no source is exceeded, every wait ends, no queue stalls, and nothing
// is left behind.
func TestPropertyOfMoves(t *testing.T) {
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) { historyOfMoves(t, rand.New(rand.NewPCG(seed, 5)), seed) })
		if t.Failed() {
			return
		}
	}
}

func historyOfMoves(t *testing.T, r *rand.Rand, seed uint64) {
	lines := NewLines(clock.System, Config{})
	keys := [...]string{"a", "b", "c"}
	var all [3]*source
	for i := range all {
		all[i] = newSource(clock.System, Config{}, time.Duration(10+r.IntN(40))*ms)
	}
	var wg sync.WaitGroup
	for range 30 + r.IntN(60) {
		i := r.IntN(3)
		k := (i + 1 + r.IntN(2)) % 3
		p := &pair{of: [2]*source{all[i], all[k]}, keys: [2]string{keys[i], keys[k]}, cost: time.Duration(1+r.IntN(10)) * ms, away: r.IntN(10) == 0, stays: r.IntN(10) == 0}
		start, leaves, elsewhere := time.Duration(r.IntN(300))*ms, time.Duration(r.IntN(1500))*ms, time.Duration(r.IntN(30))*ms
		c := Call{Asker: p, Flow: string(rune('x' + r.IntN(3))), Priority: r.IntN(Priorities), Until: never}
		if r.IntN(2) == 0 {
			leaves = time.Hour
		}
		went := r.IntN(2) == 0
		wg.Go(func() {
			time.Sleep(start)
			ctx, cancel := context.WithTimeout(t.Context(), leaves)
			defer cancel()
			begin := clock.System.Now()
			_, _ = lines.Wait(ctx, begin, &c, Spot{Key: p.keys[0], Cost: p.cost})
			if took := clock.System.Now() - begin; took > min(leaves, 10*time.Second) {
				t.Errorf("seed %d: waited %v", seed, took)
			}
			if c.Away() {
				time.Sleep(elsewhere)
				lines.Back(clock.System.Now(), &c, went)
			}
		})
	}
	for range r.IntN(4) {
		time.Sleep(time.Duration(r.IntN(200)) * ms)
		lines.Fail(errOpen, func(Asker) bool { return r.IntN(3) == 0 })
	}
	wg.Wait()
	for i, s := range all {
		if w := over(s.at, s.cost, s.depth); w > 0 {
			t.Errorf("seed %d: %v over of %s", seed, w, keys[i])
		}
	}
	if !lines.Empty() || len(lines.byKey) != 0 || len(lines.flows) != 0 {
		t.Errorf("seed %d: %d wait, lines %v, flows %v; want none", seed, lines.waiting.Load(), lines.byKey, lines.flows)
	}
}

// A call that moves has the position that it would have had if it had come there first.
func TestWhoMovesKeepsItsPlace(t *testing.T) {
	var l list
	for _, came := range []uint64{3, 5, 9, 4, 1, 10, 7} {
		l.push(&waiter{call: &Call{Came: came}})
	}
	last := uint64(0)
	for w := l.first; w != nil; w = w.next {
		if w.call.Came <= last || w.next != nil && w.next.prev != w {
			t.Errorf("%d stands behind %d", w.call.Came, last)
		}
		last = w.call.Came
	}
	if l.last.call.Came != 10 || last != 10 {
		t.Errorf("the last is %d, then %d", l.last.call.Came, last)
	}
}

// At most Room calls get their units elsewhere at a time. The others wait until one is back.
func TestNoMoreAreAwayThanThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := NewLines(clock.System, Config{})
		var mu sync.Mutex
		away, most, total := 0, 0, 0
		add := func(n int) {
			mu.Lock()
			away, most, total = away+n, max(most, away+n), total+max(0, n)
			mu.Unlock()
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				c := Call{Asker: &pair{away: true}, Until: never}
				if _, err := lines.Wait(t.Context(), clock.System.Now(), &c, Spot{Key: "a", Cost: ms}); err != nil || !c.Away() {
					t.Errorf("%v, away %v", err, c.Away())
				}
				add(1)
				time.Sleep(10 * ms)
				add(-1)
				lines.Back(clock.System.Now(), &c, true)
			})
		}
		begin := clock.System.Now()
		wg.Wait()
		if took := clock.System.Now() - begin; most != 2 || total != 20 || took != 100*ms {
			t.Errorf("%d were away at once, %d in all, in %v", most, total, took)
		}
		if !lines.Empty() || len(lines.byKey) != 0 {
			t.Error("something is left")
		}
	})
}

// Many goroutines in real time, for the race detector.
func TestManyAtOnce(t *testing.T) {
	s := newSource(clock.System, Config{}, ms)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
				_, _ = s.call(ctx, Call{Flow: string(rune('a' + i%5)), Priority: i % Priorities, Until: never}, 10*time.Microsecond)
				cancel()
			}
		})
	}
	wg.Wait()
	s.check(t)
}
