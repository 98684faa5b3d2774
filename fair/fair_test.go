package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

const ms = time.Millisecond

var never = time.Duration(1) << 60

// A server gives every head what it costs in that time, one after the other, and
// notes who went.
type server struct {
	*Queues[string]
	mu    sync.Mutex
	order []string
	spent map[string]time.Duration
}

func serve(c Config) *server {
	return &server{Queues: New[string](clock.System, c), spent: make(map[string]time.Duration)}
}

// call waits, and goes if it can.
func (s *server) call(ctx context.Context, c Call, cost time.Duration) (Place, error) {
	w, p, ok := s.Enter(clock.System.Now(), c, Spot[string]{Key: "api", Cost: cost})
	if !ok {
		return p, ErrLate
	}
	if p, err := w.Wait(ctx); err != nil {
		s.Leave(w, false)
		return p, err
	}
	w.Booked(clock.System.Now(), clock.System.Now()+cost)
	if err := clock.System.Sleep(ctx, cost); err != nil {
		s.Leave(w, false)
		return Place{}, err
	}
	s.mu.Lock()
	s.order = append(s.order, c.Flow)
	s.spent[c.Flow] += cost
	s.mu.Unlock()
	s.Leave(w, true)
	return Place{}, nil
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
		if !errors.Is(err, ErrLate) || p.Place != 2 || p.Waiting != 10 || p.Ahead > 0 || p.Due-clock.System.Now() > 50*ms {
			t.Errorf("another flow: got %+v, %v, want to be second of 10", p, err)
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
	const histories = 1000
	for seed := range uint64(histories) {
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
					if took := clock.System.Now() - begin; took > life+cost {
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
