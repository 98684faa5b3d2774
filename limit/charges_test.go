package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A world consists of a few limits, the usage of each, and waiting calls.
type world struct {
	rng   *rand.Rand
	regs  []*Registry
	now   time.Duration
	tapes []*history // of each limit; only the tape is used
	waits []*caller
}

// A caller waits as long as predicted and asks again. It holds nothing meanwhile.
type caller struct {
	p     *Charges
	at    time.Duration // when it asks again
	until time.Duration
}

func newWorld(rng *rand.Rand) (*world, error) {
	w := &world{rng: rng, now: time.Duration(rng.Int64N(1 << 50))}
	for i := range 1 + rng.IntN(5) {
		l := limitOf(bucket.Rate{Amount: 1 + upTo(rng, 5000), Per: time.Second, Burst: 1 + rng.Int64N(20)})
		if rng.IntN(4) == 0 {
			l = rollingLimit(1+rng.Int64N(10), time.Duration(1+upTo(rng, int64(time.Second))))
		}
		l.Name = fmt.Sprint("limit", i)
		r, err := NewRegistry(w.now, l)
		if err != nil {
			return nil, err
		}
		w.regs = append(w.regs, r)
		v := &history{rng: rng, m: r.Get(w.now, ""), l: l, now: w.now}
		start := w.now
		v.tape = append(v.tape, func(v *level) error { *v = *newLevel(start, l.Rate); return nil })
		w.tapes = append(w.tapes, v)
	}
	return w, nil
}

func (w *world) looks() (all []Level) {
	for _, r := range w.regs {
		all = append(all, r.Get(w.now, "").Look(w.now))
	}
	return all
}

// permit returns charges at random.
func (w *world) permit() *Charges {
	p := &Charges{}
	for _, r := range w.regs {
		if w.rng.IntN(3) > 0 {
			p.Add(Charge{r, "", w.rng.Int64N(1 + r.Limit().Most())})
		}
	}
	return p
}

// ask lets a caller ask, and proceed if it may.
func (w *world) ask(c *caller) error {
	before := w.looks()
	v := c.p.Take(w.now)
	if v.OK {
		return w.gone(c.p)
	}
	if v.Wait <= 0 || v.Ask {
		return fmt.Errorf("refused with %+v", v)
	}
	for i := range c.p.n {
		if c.p.at(i).held {
			return fmt.Errorf("refused, and holds charge %d", i)
		}
	}
	if after := w.looks(); fmt.Sprint(after) != fmt.Sprint(before) {
		return fmt.Errorf("a refusal changed %+v to %+v", before, after)
	}
	if again := c.p.Ask(w.now, v.Why); again.OK || again.Wait != v.Wait || again.Why != v.Why {
		return fmt.Errorf("told %+v and then %+v", v, again)
	}
	if v.Wait <= c.until-w.now {
		c.at = w.now + v.Wait
		w.waits = append(w.waits, c)
	}
	return nil
}

// gone records the usage of a permit, sometimes less than its reservation.
func (w *world) gone(p *Charges) error {
	now := w.now
	for i := range p.n {
		e := p.at(i)
		if !e.held {
			return fmt.Errorf("goes without charge %d", i)
		}
		for k, r := range w.regs {
			if r == e.Registry && e.Cost > 0 {
				u := &holder{n: e.Cost, at: now}
				w.tapes[k].went = append(w.tapes[k].went, u)
				w.tapes[k].tape = append(w.tapes[k].tape, func(v *level) error { return v.use(now, u.n) })
			}
		}
	}
	switch w.rng.IntN(4) {
	case 0:
		p.Settle(now, nil)
		before := w.looks()
		p.Settle(now, map[string]int64{Requests: 0})
		p.Drop(now)
		if after := w.looks(); fmt.Sprint(after) != fmt.Sprint(before) {
			return fmt.Errorf("settled twice: %+v became %+v", before, after)
		}
	case 1: // dropped: never sent
		for k, r := range w.regs {
			for i := range p.n {
				if e := p.at(i); r == e.Registry && e.Cost > 0 {
					w.tapes[k].went[len(w.tapes[k].went)-1].n = 0
				}
			}
		}
		p.Drop(now)
	}
	return nil
}

// advance lets waiting calls ask again, each exactly at its predicted instant.
func (w *world) advance(to time.Duration) error {
	for {
		next := -1
		for i, c := range w.waits {
			if c.at <= to && (next < 0 || c.at < w.waits[next].at) {
				next = i
			}
		}
		if next < 0 {
			w.now = to
			return nil
		}
		c := w.waits[next]
		w.waits = append(w.waits[:next], w.waits[next+1:]...)
		w.now = c.at
		if err := w.ask(c); err != nil {
			return err
		}
	}
}

func (w *world) step() error {
	if err := w.advance(w.now + time.Duration(upTo(w.rng, int64(100*time.Millisecond)))); err != nil {
		return err
	}
	switch w.rng.IntN(12) {
	case 0:
		k := w.rng.IntN(len(w.regs))
		now, until := w.now, w.now+time.Duration(upTo(w.rng, int64(time.Second)))
		w.regs[k].Get(now, "").Pause(now, until)
		w.tapes[k].tape = append(w.tapes[k].tape, func(v *level) error { v.pause(now, until); return nil })
	case 2:
		k := w.rng.IntN(len(w.regs))
		if h := w.tapes[k]; h.m.bucket.instead() == nil {
			now, pace := w.now, h.l.PerSecond()/float64(int64(1)<<w.rng.IntN(5))
			w.regs[k].Get(now, "").bucket.pace(now, pace)
			h.tape = append(h.tape, func(v *level) error { v.pace(now, pace); return nil })
		}
	case 1:
		if len(w.waits) > 0 {
			i := w.rng.IntN(len(w.waits))
			w.waits[i].p.Drop(w.now)
			w.waits = append(w.waits[:i], w.waits[i+1:]...)
		}
	default:
		patience := time.Duration(w.rng.IntN(3)) * time.Duration(upTo(w.rng, int64(5*time.Second)))
		return w.ask(&caller{p: w.permit(), until: w.now + patience})
	}
	return nil
}

// For any set of charges and any waiting time: all charges are taken or none, no call asks forever, and each limit by
// itself stays within its amount in every window.
func TestAPermitIsAllOrNone(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	cases(t, 1500, func(rng *rand.Rand) error {
		w, err := newWorld(rng)
		if err != nil {
			return err
		}
		for step := range 120 {
			if err := w.step(); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		if err := w.advance(w.now + time.Hour); err != nil {
			return err
		}
		if len(w.waits) > 0 {
			return fmt.Errorf("%d still wait after an hour", len(w.waits))
		}
		for k, h := range w.tapes {
			err := h.judge
			if h.m.bucket.instead() != nil {
				err = func() error { return h.judgeRolling(h.l) }
			}
			if err := err(); err != nil {
				return fmt.Errorf("%v: %w", w.regs[k].Limit(), err)
			}
		}
		return nil
	})
}

func pair(t *testing.T, slow, fast bucket.Rate) (*Registry, *Registry) {
	return mustRegistry(t, limitOf(slow)), mustRegistry(t, limitOf(fast))
}

// While a call waits for the slow limit, the fast one serves calls that need only it, at its full rate.
func TestWaitingForASlowLimitBlocksNoFastOne(t *testing.T) {
	slow, fast := pair(t, bucket.Rate{Amount: 1, Per: time.Minute, Burst: 1}, bucket.Rate{Amount: 100, Per: time.Second, Burst: 10})
	slow.Get(0, "").Try(0, 1)
	var p Charges
	p.Add(Charge{slow, "", 1})
	p.Add(Charge{fast, "", 10})
	v := p.Take(0)
	if v.OK || v.Wait != time.Minute || v.Why != 0 {
		t.Fatalf("got %+v, want to wait 1m0s for the slow limit", v)
	}
	got := 0
	for now := time.Duration(0); now < time.Minute; now += time.Millisecond {
		if fast.Get(now, "").Try(now, 1) {
			got++
		}
	}
	if got < 6000 {
		t.Errorf("the fast limit let %d go in a minute, want 6,000", got)
	}
	for now := time.Minute; ; now += v.Wait {
		if v = p.Take(now); v.OK {
			break
		}
		if now > 2*time.Minute {
			t.Fatalf("still waits: %+v", v)
		}
	}
}

// Ask and Take must agree on a wait, otherwise a permit asks forever. This includes returned units that the burst
// will have passed when the rest is there.
func TestAPermitEndsItsQuestions(t *testing.T) {
	r := mustRegistry(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}))
	m := r.Get(0, "")
	other := mustRegistry(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}))
	m.Take(0, 4)
	between, _, _ := m.Take(0, 3)
	m.Take(0, 3)
	m.Back(0, between, bucket.All) // the burst passes it from 400 to 700 ms, as fast as more comes
	for cost, want := range map[int64]time.Duration{3: 0, 5: 200 * time.Millisecond, 7: 400 * time.Millisecond, 9: 900 * time.Millisecond} {
		var p Charges
		p.Add(Charge{other, "", 1})
		p.Add(Charge{r, "", cost})
		v := p.Take(0)
		if v.OK != (want == 0) || v.Wait != want || !v.OK && v.Why != 1 {
			t.Errorf("%d: got %+v, want to wait %v", cost, v, want)
		}
		if want > 0 {
			if early := m.Ask(want-1, cost); early != 1 || m.Ask(want, cost) != 0 {
				t.Errorf("%d: is not there when it was told: %v and %v", cost, early, m.Ask(want, cost))
			}
		}
		p.Drop(0)
		if left := other.Get(0, "").Look(0).Left; left != 10 {
			t.Errorf("the other limit has %d left, want 10", left)
		}
	}
}

func TestChargesToOneKeyAreOne(t *testing.T) {
	r := mustRegistry(t, limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}))
	for cost, want := range map[int64]Verdict{5: {OK: true}, 6: {Wait: bucket.Never}} {
		var p Charges
		p.Add(Charge{r, "key", cost})
		p.Add(Charge{r, "other", 1})
		p.Add(Charge{r, "key", cost})
		if got := p.Take(0); got != want || p.Len() != 2 {
			t.Errorf("twice %d: got %+v for %d charges, want %+v for 2", cost, got, p.Len(), want)
		}
		p.Drop(0)
	}
}

// Keys beyond the maximum share a limiter. If it has enough for each charge but not for both, the wait must be the
// wait for both. A call that tried again immediately would try forever.
func TestChargesToOneLimiterAreMetTogether(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 10})
	l.MaxKeys = 1
	r := mustRegistry(t, l)
	for i := 0; r.other.Load() == nil; i++ {
		r.Get(0, fmt.Sprint(i)).Try(0, 1) // so that it is not forgotten
	}
	var p Charges
	p.Add(Charge{r, "one", 6})
	p.Add(Charge{r, "another", 6})
	if last, wait := p.latest(0, 0); last != 1 || wait != bucket.Never {
		t.Fatalf("charge %d waits longest, %v; want the second, for ever", last, wait)
	}
	if v := p.Take(0); v.OK {
		t.Errorf("12 of 10: %+v", v)
	}
}

// A call that asks the store holds its other charges meanwhile, and takes them again after the reply. Units that the
// burst has passed by then would be granted in addition to the units that came since.
func TestWhatIsHeldForTheStoreIsTakenAnew(t *testing.T) {
	local := mustRegistry(t, limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 5}))
	m := local.Get(0, "")
	now := time.Duration(0)
	for _, pauses := range []bool{false, true} {
		var p Charges
		p.Add(Charge{local, "", 1})
		now += time.Hour
		if v := p.Take(now); !v.OK || m.Look(now).Left != 4 {
			t.Fatalf("got %+v", v)
		}
		now += time.Minute
		if pauses {
			m.Pause(now, now+time.Second)
			if v := p.TakeSince(now, now-1, 0); v.OK || v.Wait != time.Second || m.Look(now).Left != 5 {
				t.Errorf("in a pause: %+v, %d left of 5", v, m.Look(now).Left)
			}
			continue
		}
		if v := p.TakeSince(now, now-1, 0); !v.OK {
			t.Fatalf("got %+v, want to go", v)
		}
		for i := range 5 {
			if got := m.Try(now, 1); got != (i < 4) {
				t.Errorf("unit %d of a burst of 5, the permit's included: %v", i+2, got)
			}
		}
	}
}

// Charges that were taken are returned if another charge of the same round fails.
func TestARoundThatFailsGivesBackWhatItTook(t *testing.T) {
	const now = time.Hour
	fast, third := pair(t, bucket.Rate{Amount: 100, Per: time.Second, Burst: 10}, bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1})
	var p Charges
	p.Add(Charge{fast, "", 1})
	p.Add(Charge{third, "", 1})
	for i := range p.n {
		if wait := p.at(i).wait(now); wait > 0 {
			t.Fatalf("charge %d waits %v", i, wait)
		}
	}
	before := fast.Get(now, "").Look(now)
	third.Get(now, "").Try(now, 1) // another call was faster
	if got, _ := p.takeRest(now, head{}); got {
		t.Fatal("takes from an empty limit")
	}
	if after := fast.Get(now, "").Look(now); after != before || p.Holds(0) || p.Holds(1) {
		t.Errorf("the fast limit was %+v and is %+v", before, after)
	}
}

func TestSettleChargesWhatWasUsed(t *testing.T) {
	for used, want := range map[int64]int64{0: 100, 30: 70, 60: 40, 100: 0, -5: 100} {
		for _, l := range []Limit{limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 100}), rollingLimit(100, time.Hour)} {
			l.Unit = "tokens"
			r := mustRegistry(t, l)
			var p Charges
			p.Add(Charge{r, "key", 60})
			if v := p.Take(0); !v.OK {
				t.Fatal(v)
			}
			p.Settle(0, map[string]int64{"bytes": 1})
			p = Charges{}
			r = mustRegistry(t, l)
			p.Add(Charge{r, "key", 60})
			p.Take(0)
			for range 2 {
				p.Settle(0, map[string]int64{"tokens": used})
			}
			if got := p.Look(0, 0).Left; got != want {
				t.Errorf("%v: %d used of 60 leave %d, want %d", l, used, got, want)
			}
		}
	}
}

func TestDebtAfterEvictionIsStillOwed(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 10})
	l.MaxKeys = 1
	r := mustRegistry(t, l)
	var p Charges
	p.Add(Charge{r, "key", 5})
	p.Take(0)
	r.Get(time.Minute, "other") // the key is full again and is evicted
	p.Settle(time.Minute, map[string]int64{Requests: 12})
	if left := r.Get(time.Minute, "key").Look(time.Minute).Left; left != 3 {
		t.Errorf("%d left, want 3 of 10", left)
	}
}

func TestAPermitWithoutChargesIsGranted(t *testing.T) {
	var p Charges
	if v := p.Take(0); v != (Verdict{OK: true}) {
		t.Errorf("got %+v", v)
	}
	p.Settle(0, nil)
	p.Drop(0)
}

func TestAPermitTakesWithoutAllocating(t *testing.T) {
	slow, fast := pair(t, bucket.Rate{Amount: 1e9, Per: time.Second, Burst: 1e9}, bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1})
	third := mustRegistry(t, limitOf(bucket.Rate{Amount: 1e9, Per: time.Second, Burst: 1e9}))
	fast.Get(0, "key").Try(0, 1)
	m := slow.Get(0, "")
	turn, _, _ := m.Take(0, 3)
	m.Take(0, 1)
	m.Back(0, turn, bucket.All) // there is a list of returned positions
	m.Take(0, 2)
	for name, charges := range map[string][]Charge{
		"yes": {{slow, "", 1}, {third, "key", 1}}, "no": {{slow, "", 1}, {fast, "key", 1}}, "one": {{slow, "", 1}},
	} {
		var p Charges
		for _, c := range charges {
			p.Add(c)
		}
		if n := testing.AllocsPerRun(100, func() { p.Take(0); p.Settle(0, nil) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
