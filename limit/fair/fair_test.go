package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

const ms = time.Millisecond

var never = time.Duration(1) << 60

// A server has one thing to give, that comes evenly. It notes who went.
type server struct {
	*Queues[string]
	mu    sync.Mutex
	begin time.Duration // what has come since then is there
	order []string
	spent map[string]time.Duration
}

func serve(c Config) *server {
	return &server{Queues: New[string](clock.System, c), spent: make(map[string]time.Duration)}
}

// call waits, and goes if it can.
func (s *server) call(ctx context.Context, c Call, cost time.Duration) (Place, error) {
	s.mu.Lock()
	now := clock.System.Now()
	if s.Empty() {
		s.begin = now
	}
	w, p, ok := s.Enter(now, c, Spot[string]{Key: "api", Cost: cost})
	s.mu.Unlock()
	if !ok {
		return p, ErrLate
	}
	p, err := s.wait(ctx, w, &c, cost)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Leave(w, err == nil); err == nil {
		s.order = append(s.order, c.Flow)
		s.spent[c.Flow] += cost
	}
	return p, err
}

func (s *server) wait(ctx context.Context, w *Waiter[string], c *Call, cost time.Duration) (Place, error) {
	for {
		if p, err := w.Wait(ctx); err != nil {
			return p, err
		}
		for w.leads() {
			left, taken := s.book(w, cost)
			if clock.System.Now()+left > c.Until {
				return w.Here(), ErrLate
			}
			switch {
			case taken:
				return Place{}, clock.System.Sleep(ctx, left)
			case left == 0:
				w.Yield()
			default:
				if err := w.Sleep(ctx, left-w.slack()); err != nil {
					return Place{}, err
				}
			}
		}
	}
}

func (w *Waiter[K]) leads() bool {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.state == leads
}

// book is how long it takes until what the head costs has come. It is taken if that is
// soon. If it is 0 and not taken the head has to yield.
func (s *server) book(w *Waiter[string], cost time.Duration) (left time.Duration, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, due := clock.System.Now(), s.begin+cost
	if due > now && !w.Booked(now, due) {
		return 0, false
	}
	if due-now > w.slack() {
		return due - now, false
	}
	s.begin = max(due, now-cost)
	return max(0, due-now), true
}

// flood sends calls of a flow that all wait at once.
func (s *server) flood(wg *sync.WaitGroup, n int, c Call, cost time.Duration) {
	c.Until = never
	for range n {
		wg.Go(func() { _, _ = s.call(context.Background(), c, cost) })
	}
	synctest.Wait()
}

func (s *server) check(t *testing.T) {
	t.Helper()
	if !s.Empty() || len(s.byKey) != 0 || len(s.flows) != 0 {
		t.Errorf("%d wait, queues %v, flows %v; want none", s.waiting.Load(), s.byKey, s.flows)
	}
}

func TestAFloodDoesNotComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{})
		var wg sync.WaitGroup
		s.flood(&wg, 20, Call{Flow: "a"}, 10*ms)
		s.flood(&wg, 3, Call{Flow: "b"}, 10*ms)
		wg.Wait()
		if got := fmt.Sprint(s.order[:8]); got != "[a b b a b a a a]" {
			t.Errorf("went in the order %v", got)
		}
		s.check(t)
	})
}

func TestFlowsShareByWeightAndCost(t *testing.T) {
	for _, c := range []struct {
		name   string
		wa, wb int
		ca, cb time.Duration
		want   float64 // what a gets for one that b gets
	}{
		{"equals", 1, 1, 10 * ms, 10 * ms, 1},
		{"a weight of 3", 3, 1, 10 * ms, 10 * ms, 3},
		{"calls that cost 16 times as much", 1, 1, 160 * ms, 10 * ms, 1},
		{"both", 1, 2, 70 * ms, 30 * ms, 0.5},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(Config{PerFlow: 5000})
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 400 {
				wg.Go(func() { _, _ = s.call(ctx, Call{Flow: "a", Weight: c.wa, Until: never}, c.ca) })
				wg.Go(func() { _, _ = s.call(ctx, Call{Flow: "b", Weight: c.wb, Until: never}, c.cb) })
			}
			time.Sleep(3 * time.Second)
			s.mu.Lock()
			a, b := s.spent["a"], s.spent["b"]
			s.mu.Unlock()
			if diff := float64(a) - c.want*float64(b); diff > 2.1*float64(max(c.ca, c.cb)) || -diff > 2.1*c.want*float64(max(c.ca, c.cb)) {
				t.Errorf("%s: got %v and %v, want %v to 1", c.name, a, b, c.want)
			}
			cancel()
			wg.Wait()
			s.check(t)
		})
	}
}

// Each lane has its share, however many flows it has.
func TestLanesShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		names := []string{"high", "normal", "low"}
		for i, flows := range []int{1, 10, 100} {
			for j := range flows {
				for range 200 / flows {
					wg.Go(func() {
						_, err := s.call(ctx, Call{Flow: fmt.Sprint(names[i], j), Lane: i, Until: never}, 10*ms)
						if err == nil {
							s.mu.Lock()
							s.spent[names[i]] += ms
							s.mu.Unlock()
						}
					})
				}
			}
		}
		time.Sleep(2100 * ms)
		s.mu.Lock()
		for i, want := range []time.Duration{160 * ms, 40 * ms, 10 * ms} {
			if got := s.spent[names[i]]; got < want-3*ms || got > want+3*ms {
				t.Errorf("lane %s got %v of 210ms, want %v", names[i], got, want)
			}
		}
		s.mu.Unlock()
		cancel()
		wg.Wait()
		s.check(t)
	})
}

func TestWhoLeavesHasCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{})
		var wg sync.WaitGroup
		s.flood(&wg, 40, Call{Flow: "b"}, 10*ms)
		for range 30 { // all of a leave, one of them from the head
			wg.Go(func() {
				_, _ = s.call(t.Context(), Call{Flow: "a", Until: clock.System.Now() + 5*ms}, 10*ms)
			})
		}
		time.Sleep(6 * ms)
		wg.Go(func() { _, _ = s.call(t.Context(), Call{Flow: "a", Until: never}, 10*ms) })
		wg.Wait()
		if s.order[1] != "a" {
			t.Errorf("went in the order %v, want a second", s.order[:4])
		}
		s.check(t)
	})
}

func TestPlaceOfWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{})
		var wg sync.WaitGroup
		s.flood(&wg, 10, Call{Flow: "a"}, 100*ms)
		s.flood(&wg, 1, Call{Flow: "b"}, 100*ms)
		p, err := s.call(t.Context(), Call{Flow: "a", Until: clock.System.Now() + 250*ms}, 100*ms)
		if want := (Place{Place: 10, Waiting: 10, Ahead: 800 * ms}); !errors.Is(err, ErrLate) || p.Place != want.Place || p.Waiting != want.Waiting || p.Ahead != want.Ahead {
			t.Errorf("got %+v, %v, want %+v", p, err, want)
		}
		p, err = s.call(t.Context(), Call{Flow: "c", Until: clock.System.Now() + 10*ms}, 100*ms)
		if !errors.Is(err, ErrLate) || p.Place != 1 || p.Waiting != 10 || p.Ahead > 0 || p.Due-clock.System.Now() > 50*ms {
			t.Errorf("another flow: got %+v, %v, want to be first of 10", p, err)
		}
		wg.Wait()
		s.check(t)
	})
}

func TestTooManyAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{Longest: 7, PerFlow: 5})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _, _ = s.call(ctx, Call{Flow: "a", Until: never}, time.Second) })
		}
		synctest.Wait()
		begin := clock.System.Now()
		if p, err := s.call(ctx, Call{Flow: "a", Until: never}, time.Second); !errors.Is(err, ErrLate) || p.Place != 6 || p.Waiting != 6 || p.Ahead != 4*time.Second {
			t.Errorf("the sixth of a flow: got %+v, %v", p, err)
		}
		for range 2 {
			wg.Go(func() { _, _ = s.call(ctx, Call{Flow: "b", Until: never}, time.Second) })
		}
		synctest.Wait()
		if p, err := s.call(ctx, Call{Flow: "c", Until: never}, time.Second); !errors.Is(err, ErrLate) || p.Place != 3 || p.Waiting != 8 {
			t.Errorf("the eighth: got %+v, %v", p, err)
		}
		if clock.System.Now() != begin {
			t.Error("not at once")
		}
		cancel()
		wg.Wait()
		s.check(t)
	})
}

func TestHopelessCallsAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{})
		var wg sync.WaitGroup
		s.flood(&wg, 10, Call{Flow: "a"}, 100*ms)
		now := clock.System.Now()
		spot := Spot[string]{Key: "api", Cost: 100 * ms, Steady: true}
		// No other flow goes before the head, for none has had less.
		for _, c := range []struct {
			flow string
			in   time.Duration
			ok   bool
		}{{"a", 1099 * ms, false}, {"a", 1100 * ms, true}, {"b", 199 * ms, false}, {"b", 200 * ms, true}} {
			w, _, ok := s.Enter(now, Call{Flow: c.flow, Until: now + c.in}, spot)
			if ok {
				s.Leave(w, false)
			}
			if ok != c.ok {
				t.Errorf("flow %s with %v left: let in %v", c.flow, c.in, ok)
			}
		}
		wg.Wait()
		s.check(t)
	})
}

func TestAHeadFarAwaySendsOthersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{})
		head, _, _ := s.Enter(clock.System.Now(), Call{Flow: "a", Until: never}, Spot[string]{Key: "api", Cost: ms})
		begin := clock.System.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			p, err := s.call(t.Context(), Call{Flow: "b", Until: begin + 3*time.Second}, ms)
			if !errors.Is(err, ErrLate) || p.Place != 2 || p.Waiting != 2 || clock.System.Now() != begin {
				t.Errorf("got %+v, %v after %v", p, err, clock.System.Now()-begin)
			}
		})
		synctest.Wait()
		head.Booked(begin, begin+10*time.Second)
		wg.Wait()
		s.Leave(head, true)
		s.check(t)
	})
}

// Who comes goes at the next turn, although it has been booked, and ten that come
// together take at most twice as long as they would alone, whoever has had how much
// before.
func TestAHeadYieldsToWhoGoesBeforeIt(t *testing.T) {
	for phase := range 100 * ms / (7 * ms) {
		for _, customers := range []string{"", "flood", "light"} { // who has been there for long
			synctest.Test(t, func(t *testing.T) {
				s := serve(Config{})
				var wg sync.WaitGroup
				if customers != "" {
					s.flood(&wg, 100, Call{Flow: customers}, 100*ms)
					wg.Wait()
				}
				s.flood(&wg, 50, Call{Flow: "flood"}, 100*ms)
				time.Sleep(1000*ms + phase*7*ms)
				begin := clock.System.Now()
				var took [10]time.Duration
				for i := range took {
					wg.Go(func() {
						_, _ = s.call(t.Context(), Call{Flow: "light", Until: never}, 100*ms)
						took[i] = clock.System.Now() - begin
					})
				}
				wg.Wait()
				if slices.Min(took[:]) > 100*ms || slices.Max(took[:]) > 1800*ms {
					t.Errorf("customers %q, after %v of a turn: waited %v, want a turn for the first and 18 for the last at most", customers, phase*7*ms, took)
				}
				s.check(t)
			})
		}
	}
}

// A head yields to who is before it only: not to its own flow, to those who have had
// as much, or if it must stay, and not when its turn is at hand. Those who come again
// and again, each from another flow, do not keep it from going.
func TestAHeadYieldsToNobodyElse(t *testing.T) {
	s := New[string](clock.System, Config{})
	spot := Spot[string]{Key: "x", Cost: ms}
	enter := func(flow string, lane int) *Waiter[string] {
		w, _, _ := s.Enter(0, Call{Flow: flow, Lane: lane, Until: never}, spot)
		return w
	}
	all := []*Waiter[string]{enter("a", 1), enter("a", 1), enter("b", 1), enter("c", 2)}
	head := all[0]
	if !head.Booked(0, 10*ms) {
		t.Error("a yields to equals")
	}
	if all = append(all, enter("d", 0)); !head.Booked(9*ms, 10*ms) {
		t.Error("a yields at the last moment")
	}
	for _, w := range all {
		if w != head && w.state == leads { // next of a turn that is at hand
			s.Leave(w, true)
		}
	}
	spot.Key = "y"
	s.Move(0, head, spot, true)
	late := enter("e", 0)
	if late.queue != head.queue || late.state != waits || !head.Booked(0, 10*ms) {
		t.Error("a yields though it must not")
	}
	s.Leave(head, true)
	s.Leave(late, false)
}

// What a flow had before it was away counts no more: of two that come back, the first
// goes first.
func TestWhoWasAwayBeginsAnew(t *testing.T) {
	s := New[string](clock.System, Config{})
	enter := func(flow string) *Waiter[string] {
		w, _, _ := s.Enter(0, Call{Flow: flow, Until: never}, Spot[string]{Cost: ms})
		return w
	}
	var flood []*Waiter[string]
	for range 20 {
		flood = append(flood, enter("flood"))
	}
	goes := func(n int) {
		for range n {
			s.Leave(flood[0], true)
			flood = flood[1:]
		}
	}
	goes(3)
	for range 3 {
		old := enter("old")
		goes(1)
		s.Leave(old, true)
		goes(2)
	}
	goes(3)
	old, other := enter("old"), enter("new")
	if goes(1); old.state != leads || other.state != waits {
		t.Errorf("the first is %v, the second is %v", old.state, other.state)
	}
}

// Who goes before the head can go when the head could have gone.
func TestWhoGoesBeforeTheHeadIsNotHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{})
		var wg sync.WaitGroup
		s.flood(&wg, 10, Call{Flow: "a"}, 100*ms)
		time.Sleep(250 * ms)
		now := clock.System.Now()
		spot := Spot[string]{Key: "api", Cost: 100 * ms, Steady: true}
		if _, p, ok := s.Enter(now, Call{Flow: "b", Until: now + 49*ms}, spot); ok || p.Place != 1 || p.Waiting != 9 || p.Due != now-50*ms {
			t.Errorf("with 49ms left: let in %v, %+v", ok, p)
		}
		w, _, ok := s.Enter(now, Call{Flow: "b", Until: now + 50*ms}, spot)
		if ok {
			s.Leave(w, false)
		} else {
			t.Error("with 50ms left: not let in")
		}
		wg.Wait()
		s.check(t)
	})
}

// One that yields keeps its place before the others of its flow, and what it paid.
func TestWhoYieldsIsNextOfItsFlow(t *testing.T) {
	s := New[string](clock.System, Config{})
	enter := func(flow string, lane int) *Waiter[string] {
		w, _, _ := s.Enter(0, Call{Flow: flow, Lane: lane, Until: never}, Spot[string]{Cost: ms})
		return w
	}
	a, second := enter("a", 1), enter("a", 1)
	for range 3 {
		before := a.queue.lanes[1]
		if !a.Booked(0, 10*ms) {
			t.Fatal("a yields to the second of a")
		}
		b := enter("b", 0)
		if a.Booked(0, 10*ms) {
			t.Fatal("a does not yield to a higher lane")
		}
		if a.Yield(); a.state != waits || b.state != leads || a.queue.due != 0 {
			t.Fatalf("a is %v, b is %v", a.state, b.state)
		}
		s.Leave(b, false)
		if after := a.queue.lanes[1]; a.state != leads || second.state != waits || after.start != before.start || after.n != before.n || after.weights != before.weights {
			t.Fatalf("a is %v and the second of a is %v; the lane was %+v and is %+v", a.state, second.state, before.item, after.item)
		}
	}
	s.Leave(a, true)
	if second.state != leads {
		t.Errorf("the second is %v", second.state)
	}
	s.Leave(second, true)
	if len(s.byKey) != 0 {
		t.Error("something is left")
	}
}

func TestKickWakesHeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{})
		w, _, _ := s.Enter(clock.System.Now(), Call{Until: never}, Spot[string]{})
		if _, err := w.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = w.Sleep(t.Context(), 0)
		begin := clock.System.Now()
		time.AfterFunc(3*time.Second, s.Kick)
		for clock.System.Now() == begin {
			if err := w.Sleep(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if took := clock.System.Now() - begin; took != 3*time.Second {
			t.Errorf("slept %v", took)
		}
		s.Leave(w, true)
		s.check(t)
	})
}

// A head goes to and fro between two things that it waits for.
func TestMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(Config{})
		now := clock.System.Now()
		enter := func(flow, key string) *Waiter[string] {
			w, _, _ := s.Enter(now, Call{Flow: flow, Until: never}, Spot[string]{Key: key, Cost: ms})
			return w
		}
		a, b, c := enter("a", "x"), enter("b", "x"), enter("c", "y")
		if b.state != waits {
			t.Fatal("two heads")
		}
		if s.Move(now, a, Spot[string]{Key: "y", Cost: ms}, false) || b.state != leads {
			t.Errorf("a is %v in y, b is %v in x", a.state, b.state)
		}
		if s.Leave(c, true); a.state != leads {
			t.Errorf("a is %v when c has gone", a.state)
		}
		if !s.Move(now, a, Spot[string]{Key: "x", Cost: ms}, true) || b.state != leads {
			t.Errorf("a must be a head in x and is %v", a.state)
		}
		s.Leave(b, true)
		s.Leave(a, true)
		s.check(t)
	})
}

// Whatever comes, waits, moves and leaves: everybody ends, one head stands in each
// queue while anybody waits, and flows that are always there get the same.
func TestPropertyEveryWaiterEnds(t *testing.T) {
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := serve(Config{Longest: 5 + r.IntN(100), PerFlow: 3 + r.IntN(30), Weights: [Lanes]int{1 + r.IntN(20), 1 + r.IntN(5), 1}})
			var wg sync.WaitGroup
			for range 40 + r.IntN(40) {
				c := Call{Flow: string(rune('a' + r.IntN(5))), Lane: r.IntN(Lanes), Weight: r.IntN(4)}
				cost, life, start := time.Duration(1+r.IntN(20))*ms, time.Duration(r.IntN(1000))*ms, time.Duration(r.IntN(300))*ms
				leaves := time.Duration(r.IntN(1500)) * ms
				wg.Go(func() {
					time.Sleep(start)
					ctx, cancel := context.WithTimeout(t.Context(), leaves)
					defer cancel()
					begin := clock.System.Now()
					c.Until = begin + life
					_, _ = s.call(ctx, c, cost)
					if took := clock.System.Now() - begin; took > life {
						t.Errorf("seed %d: one with %v left stayed for %v", seed, life, took)
					}
				})
			}
			wg.Go(func() {
				for range 20 {
					time.Sleep(17 * ms)
					s.mu.Lock()
					s.Queues.mu.Lock()
					for k, q := range s.byKey {
						if err := q.sound(); err != nil {
							t.Errorf("seed %d: queue %s: %v", seed, k, err)
						}
					}
					s.Queues.mu.Unlock()
					s.mu.Unlock()
				}
			})
			wg.Wait()
			s.check(t)
		})
		if t.Failed() {
			return
		}
	}
}

func (q *queue[K]) sound() error {
	n, cost := 0, int64(0)
	for i := range q.lanes {
		for j, f := range q.lanes[i].waiting {
			if f.slot != j || f.n == 0 {
				return fmt.Errorf("flow %s: slot %d of %d, %d calls", f.name, f.slot, j, f.n)
			}
			n, cost = n+f.n, cost+f.cost
		}
		if l := &q.lanes[i]; l.n > 0 != (len(l.waiting) > 0) {
			return fmt.Errorf("lane %d: %d calls in %d flows", i, l.n, len(l.waiting))
		}
	}
	if n != q.n || n > 0 && q.heads < 1 || q.heads > q.led {
		return fmt.Errorf("%d of %d wait, %d heads of %d", n, q.n, q.heads, q.led)
	}
	return nil
}

// Flows that always have somebody waiting get the same, whatever their calls cost
// and whoever else comes and goes.
func TestPropertyBackloggedFlowsGetTheSame(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := New[string](clock.System, Config{PerFlow: 1 << 20, Longest: 1 << 20})
		most := time.Duration(0)
		var heads []*Waiter[string]
		enter := func(flow string, weight int) {
			cost := time.Duration(1 + r.IntN(1000))
			most = max(most, cost)
			w, _, ok := s.Enter(0, Call{Flow: flow, Weight: weight, Until: never}, Spot[string]{Cost: cost})
			if !ok {
				t.Fatal("refused")
			}
			heads = append(heads, w)
		}
		wa, wb := 1+r.IntN(5), 1+r.IntN(5)
		for range 200 {
			enter("a", wa)
			enter("b", wb)
		}
		got := map[string]float64{}
		for range 150 {
			if r.IntN(3) == 0 {
				enter(string(rune('c'+r.IntN(9))), 1)
			}
			for i, w := range heads {
				if w.state == leads {
					got[w.call.Flow] += float64(w.call.Cost) / float64(w.call.Weight)
					s.Leave(w, true)
					heads = append(heads[:i], heads[i+1:]...)
					break
				}
			}
			if diff := got["a"] - got["b"]; max(diff, -diff) > 2*float64(most) {
				t.Fatalf("seed %d: weights %d and %d got %.0f and %.0f each for one, no call costs more than %v", seed, wa, wb, got["a"], got["b"], most)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	if err := (Config{Weights: [Lanes]int{0, -1, 2000}, Longest: -1, PerFlow: -1}).Validate(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 4 {
		t.Errorf("got %v, want four mistakes", err)
	}
	if got := (Config{}).WithDefaults(); got != (Config{Weights: [Lanes]int{16, 4, 1}, Longest: 10_000, PerFlow: 1_000}) {
		t.Errorf("defaults are %+v", got)
	}
}

// Flows come and go without end; what is remembered of them does not grow.
func TestFlowsAreForgotten(t *testing.T) {
	s := New[string](clock.System, Config{})
	keep, _, _ := s.Enter(0, Call{Flow: "keep", Until: never}, Spot[string]{Cost: 1})
	next, _, _ := s.Enter(0, Call{Flow: "keep", Until: never}, Spot[string]{Cost: 1})
	for i := range 100_000 {
		w, _, _ := s.Enter(0, Call{Flow: fmt.Sprint(i), Until: never}, Spot[string]{Cost: 1})
		if i%2 == 0 {
			s.Leave(w, false)
			continue
		}
		s.Leave(keep, true)
		keep, next = next, w
	}
	if n := len(keep.queue.lanes[0].flows); n > 200 {
		t.Errorf("%d flows are remembered", n)
	}
}

func BenchmarkEnterAndLeave(b *testing.B) {
	for _, waiting := range []int{0, 10, 1000} {
		b.Run(fmt.Sprint("waiting=", waiting), func(b *testing.B) {
			s := New[string](clock.System, Config{})
			for i := range waiting {
				s.Enter(0, Call{Flow: fmt.Sprint(i), Until: never}, Spot[string]{Cost: 1000})
			}
			for b.Loop() {
				w, _, _ := s.Enter(0, Call{Flow: "x", Until: never}, Spot[string]{Cost: 1000, Steady: true})
				s.Leave(w, true)
			}
		})
	}
}

func ExampleQueues() {
	q := New[string](clock.System, Config{})
	until := clock.System.Now() + time.Minute
	first, _, _ := q.Enter(clock.System.Now(), Call{Flow: "alice", Until: until}, Spot[string]{Key: "tokens", Cost: ms})
	second, _, _ := q.Enter(clock.System.Now(), Call{Flow: "alice", Until: until}, Spot[string]{Key: "tokens", Cost: ms})
	third, _, _ := q.Enter(clock.System.Now(), Call{Flow: "bob", Until: until}, Spot[string]{Key: "tokens", Cost: ms})
	_, _ = first.Wait(context.Background())
	q.Leave(first, true)
	_, err := third.Wait(context.Background())
	fmt.Println("bob goes before the second of alice:", err)
	q.Leave(third, true)
	q.Leave(second, false)
	// Output: bob goes before the second of alice: <nil>
}
