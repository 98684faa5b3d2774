package inflight

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	ms = time.Millisecond
	t0 = 30 * 365 * 24 * time.Hour // the instant at which tests begin
)

// A rig is a bound with an upstream that responds when the test requires.
type rig struct {
	*testing.T
	*Bound
	now  time.Duration
	sent map[Slot]time.Duration
}

func newRig(t *testing.T, c Config) *rig {
	return &rig{t, New(c), t0, make(map[Slot]time.Duration)}
}

func (r *rig) take() (Slot, bool) {
	s, ok := r.Take(r.now)
	if ok {
		r.sent[s] = r.now
	}
	return s, ok
}

func (r *rig) must() Slot {
	r.Helper()
	s, ok := r.take()
	if !ok {
		r.Fatalf("no slot: %+v", r.Look(r.now))
	}
	return s
}

func (r *rig) none(why string) {
	r.Helper()
	if _, ok := r.take(); ok {
		r.Fatalf("a slot %s: %+v", why, r.Look(r.now))
	}
}

func (r *rig) answer(s Slot) { r.Answered(r.now, s, Answer{Sent: r.sent[s]}) }

func (r *rig) fill() (all []Slot) {
	for {
		s, ok := r.take()
		if !ok {
			return all
		}
		all = append(all, s)
	}
}

// calm sends calls at a rate for a number of seconds, each with a response after d.
func (r *rig) calm(perSecond, seconds int, d time.Duration) {
	for range seconds * perSecond {
		s := r.must()
		r.now += d
		r.answer(s)
		r.now += time.Second/time.Duration(perSecond) - d
	}
}

func (r *rig) inFlight(want int) {
	r.Helper()
	if got := r.InFlight(); got != want {
		r.Fatalf("%d in flight, want %d", got, want)
	}
}

func TestALeaverKeepsItsSlotUntilSomethingLaterIsAnswered(t *testing.T) {
	r := newRig(t, Config{Limit: 3})
	old, left, later := r.must(), r.must(), r.must()
	dropped := false
	r.Left(r.now, left, func() { dropped = true })
	r.inFlight(3)
	r.none("of a caller who left")
	r.answer(old)
	r.inFlight(2)
	if dropped {
		t.Error("dropped at the answer to what was sent before")
	}
	r.answer(later)
	r.inFlight(0)
	if !dropped {
		t.Error("not dropped at the answer to what was sent later")
	}
}

func TestALeaverKeepsItsSlotUntilItIsAnswered(t *testing.T) {
	r := newRig(t, Config{Limit: 2})
	first, second := r.must(), r.must()
	r.Left(r.now, first, nil)
	r.Left(r.now, second, nil)
	r.Heard(r.now, second, Answer{Sent: r.now})
	r.inFlight(0)
	r.Heard(r.now, first, Answer{Sent: r.now}) // its slot is already free
	r.inFlight(0)
}

func TestALeaverKeepsItsSlotForHalfAMinuteAtMost(t *testing.T) {
	r := newRig(t, Config{})
	all := r.fill()
	dropped := 0
	for _, s := range all {
		r.Left(r.now, s, func() { dropped++ })
	}
	r.now += Held - 1
	n := r.InFlight()
	if r.take(); dropped != 0 {
		t.Errorf("%d dropped too early", dropped)
	}
	r.now++
	if r.take(); dropped != len(all) || r.InFlight() > n+2-len(all) {
		t.Errorf("%d of %d dropped, %d in flight", dropped, len(all), r.InFlight())
	}
}

func TestProbesInSilence(t *testing.T) {
	r := newRig(t, Config{})
	r.calm(100, 5, 5*ms)
	all := r.fill()
	var at []time.Duration
	for begin := r.now; r.now < begin+10*time.Second; r.now += 50 * ms {
		if s, ok := r.take(); ok {
			at = append(at, r.now-begin)
			all = append(all, s)
		}
	}
	want := []time.Duration{1000 * ms, 2500 * ms, 4500 * ms, 6500 * ms, 8500 * ms}
	if !slices.Equal(at, want) {
		t.Errorf("probes after %v, want %v", at, want)
	}
	r.answer(all[len(all)-1]) // its slot was above the bound
	r.now += firstProbe - 1
	r.none("before a second of silence")
	r.now++
	r.must()
}

func TestOneSlowCallStopsNobody(t *testing.T) {
	r := newRig(t, Config{})
	r.calm(1, 20, 20*ms)
	r.Left(r.now, r.must(), nil) // so that nothing counts as proven
	r.now += Held
	slow := r.must()
	quick := 0
	for range 60 {
		r.now += time.Second
		if s, ok := r.take(); ok {
			r.now += 20 * ms
			r.answer(s)
			quick++
		}
	}
	if quick < 30 {
		t.Errorf("%d calls in a minute beside a slow one: %+v", quick, r.Look(r.now))
	}
	r.answer(slow)
}

func TestAFixedBoundIsNeverPassed(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rnd.IntN(5)
		r := newRig(t, Config{Limit: n})
		open := map[Slot]bool{} // attempts that continue
		var alive []Slot        // attempts whose callers wait
		for range 300 {
			r.now += time.Duration(rnd.Int64N(int64(700 * ms)))
			switch s, ok := Slot(0), false; rnd.IntN(3) {
			case 0:
				if s, ok = r.take(); ok {
					open[s] = true
					alive = append(alive, s)
				}
			default:
				if len(alive) == 0 {
					continue
				}
				i := rnd.IntN(len(alive))
				s = alive[i]
				alive = slices.Delete(alive, i, i+1)
				if rnd.IntN(4) == 0 {
					delete(open, s)
					r.answer(s)
				} else {
					r.Left(r.now, s, func() { delete(open, s) })
				}
			}
			if len(open) > n || r.InFlight() > n {
				t.Fatalf("seed %d: %d go on, %d are counted, the bound is %d", seed, len(open), r.InFlight(), n)
			}
		}
	}
}

func TestAFixedBoundGivesUpTheOldestInSilence(t *testing.T) {
	r := newRig(t, Config{Limit: 2})
	var dropped []Slot
	for range 2 {
		s := r.must()
		r.Left(r.now, s, func() { dropped = append(dropped, s) })
	}
	r.now += firstProbe
	r.must()
	if !slices.Equal(dropped, []Slot{1}) {
		t.Errorf("dropped %v, want the first", dropped)
	}
	r.none("of the second")
}

// A caller that leaves reveals a stall earlier than a wait for it: the bound that bursts have shown to be safe no
// longer counts.
func TestALossTakesWhatWasProven(t *testing.T) {
	r := newRig(t, Config{})
	r.calm(100, 5, 5*ms)
	burst := r.fill()
	r.now += 10 * ms
	for _, s := range burst {
		r.answer(s)
	}
	before := r.Look(r.now)
	slow, quick := r.must(), r.must()
	r.now += 20 * ms
	r.answer(quick)
	r.Left(r.now, slow, nil)
	if got := r.Look(r.now); got.Bound != before.Bound {
		t.Errorf("bound %d after a slow call was left, want %d as before", got.Bound, before.Bound)
	}
	r.Left(r.now, r.must(), nil)
	if got := r.Look(r.now); got.Bound >= before.Bound || got.Calm {
		t.Errorf("after a loss: %+v, before %+v", got, before)
	}
	r.calm(100, 9, 5*ms)
	if r.Look(r.now).Calm {
		t.Error("calm within 10 s of a loss")
	}
	r.calm(100, 2, 5*ms)
	if !r.Look(r.now).Calm {
		t.Errorf("not calm 11 s after a loss: %+v", r.Look(r.now))
	}
}

func TestWhatIsOverdueEndsTheCalm(t *testing.T) {
	r := newRig(t, Config{})
	r.calm(100, 5, 5*ms)
	l := &r.state.learnt
	for range 2 {
		r.must()
	}
	r.now += time.Hour
	if !r.Look(r.now).Calm {
		t.Error("two calls that take an hour end the calm")
	}
	r.must()
	if r.now += l.base + l.slack(); !r.Look(r.now).Calm {
		t.Error("the third ends the calm before it is overdue")
	}
	if r.now += 1000; r.Look(r.now).Calm {
		t.Error("calm though three are overdue")
	}
}

func TestErrorsThatComeFastSayNothing(t *testing.T) {
	r := newRig(t, Config{})
	r.calm(50, 5, 100*ms)
	before := r.Look(r.now)
	for range 20_000 {
		s := r.must()
		r.now += ms
		r.Answered(r.now, s, Answer{Sent: r.sent[s], Failed: true})
	}
	if got := r.Look(r.now); got.Base != before.Base || got.Rate != before.Rate {
		t.Errorf("after errors: %+v, before %+v", got, before)
	}
	for range 100 { // the upstream did the work for late errors
		s := r.must()
		r.now += 100 * ms
		r.Answered(r.now, s, Answer{Sent: r.sent[s], Failed: true})
	}
	if got := r.Look(r.now); got.Rate == before.Rate && r.state.learnt.took.n == 0 {
		t.Error("errors that take their time say nothing either")
	}
}

func TestUndoneAttemptsCountForNothing(t *testing.T) {
	r := newRig(t, Config{})
	r.calm(100, 5, 5*ms)
	for range 10 {
		r.Undo(r.must())
	}
	r.inFlight(0)
	r.must()
	r.must()
	r.now += time.Minute
	if !r.Look(r.now).Calm {
		t.Error("attempts that were not sent are overdue")
	}
}

func TestMinAndMax(t *testing.T) {
	r := newRig(t, Config{Min: 50, Max: 60})
	r.calm(20, 5, 20*ms)
	all := r.fill()
	if len(all) != 50 {
		t.Errorf("%d went, want the least bound", len(all))
	}
	for range 20 {
		r.now += 20 * ms
		for _, s := range all {
			r.answer(s)
		}
		all = r.fill()
	}
	if len(all) != 60 {
		t.Errorf("%d went, want the most", len(all))
	}
	r.Set(r.now, Config{Limit: 70})
	if n := len(r.fill()); n != 10 {
		t.Errorf("%d more went after the bound became 70, want 10", n)
	}
}

func TestValidate(t *testing.T) {
	for c, want := range map[Config]int{
		{}: 0, {Limit: 5}: 0, {Min: 2, Max: 2}: 0, {Limit: -1, Min: -1, Max: -1}: 3, {Min: 3, Max: 2}: 1, {Limit: 4, Min: 1}: 1, {Limit: Most + 1}: 1,
	} {
		n := 0
		if err := c.Validate(); err != nil {
			n = len(err.(interface{ Unwrap() []error }).Unwrap())
		}
		if n != want {
			t.Errorf("%+v: %d mistakes, want %d", c, n, want)
		}
	}
}

func TestMedian(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		var h histogram
		var all []time.Duration
		for range 1 + r.IntN(200) {
			d := time.Duration(math.Exp(r.Float64()*26) * 10)
			all = append(all, d)
			h.add(d)
		}
		slices.Sort(all)
		want := all[len(all)/2]
		if got := h.median(); got < want || got > want+want/31+1<<finest {
			t.Fatalf("seed %d: median %v, want %v", seed, got, want)
		}
	}
}

func TestArithmetic(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		a := r.Int64N(Most * scale)
		if x := root(a); x*x > a*scale || (x+1)*(x+1) <= a*scale {
			t.Fatalf("root(%d) = %d", a, x)
		}
		rate, d := r.Int64N(1000*scale), time.Duration(r.Int64N(int64(100*time.Second)))
		want := min(float64(rate)*d.Seconds(), Most*scale)
		if got := product(rate, d); math.Abs(float64(got)-want) > 1+want/1e9 {
			t.Fatalf("product(%d, %v) = %d, want %.1f", rate, d, got, want)
		}
	}
}

// Slots are neither lost nor created when many goroutines take and return them.
func TestManyAtOnce(t *testing.T) {
	b := New(Config{Limit: 10})
	var now, most atomic.Int64
	now.Store(int64(t0))
	var flight atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 4))
			for range 2000 {
				at := time.Duration(now.Add(1000))
				s, ok := b.Take(at)
				if !ok {
					continue
				}
				if n := flight.Add(1); n > most.Load() {
					most.Store(n)
				}
				flight.Add(-1)
				switch r.IntN(4) {
				case 0:
					b.Left(at, s, nil)
				case 1:
					b.Undo(s)
				default:
					b.Answered(at, s, Answer{Sent: at})
				}
			}
		})
	}
	wg.Wait()
	s := b.Force(time.Duration(now.Add(1)))
	b.Answered(time.Duration(now.Load()), s, Answer{})
	if n := b.InFlight(); n != 0 || most.Load() > 10 {
		t.Errorf("%d slots are left, at most %d were taken", n, most.Load())
	}
}

func TestNothingIsAllocated(t *testing.T) {
	b := New(Config{})
	now := t0
	if n := testing.AllocsPerRun(5000, func() {
		now += ms
		s, _ := b.Take(now)
		b.Answered(now+ms, s, Answer{Sent: now})
	}); n != 0 {
		t.Errorf("%v allocations for a call", n)
	}
}

func BenchmarkTakeAndAnswer(b *testing.B) {
	bound := New(Config{Min: 1000})
	var now atomic.Int64
	now.Store(int64(t0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			at := time.Duration(now.Add(1000))
			s, _ := bound.Take(at)
			bound.Answered(at+ms, s, Answer{Sent: at})
		}
	})
}
