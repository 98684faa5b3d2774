package cascade

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A history is a state and the calls under way, in an order of chance.
type history struct {
	t    *testing.T
	r    *rand.Rand
	seed uint64
	c    Config
	s    state
	now  time.Duration
	out  []ticket

	probes   []time.Duration // deadlines of probes that are out and not lost
	probeGen uint64
	rested   time.Duration // until when nobody may ask: what the last hint said
	offered  int           // calls in the present step of the ramp
	let      int
	returned int // of those, places that were given back
	at       ticket
}

const patience = 40 * time.Second

func newHistory(t *testing.T, seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 0))
	h := &history{t: t, r: r, seed: seed, now: time.Hour}
	h.c = Config{Failures: 1 + r.IntN(4), Cool: Cool{First: time.Duration(1+r.IntN(3000)) * time.Millisecond}}
	if r.IntN(2) == 0 {
		h.c.Ramp = randomRamp(r)
	}
	h.c = h.c.WithDefaults()
	return h
}

func randomRamp(r *rand.Rand) []Step {
	ramp := make([]Step, r.IntN(5))
	for i := range ramp {
		ramp[i] = Step{Percent: 1 + r.IntN(100), Successes: 1 + r.IntN(10), For: time.Duration(1 + r.Int64N(int64(10*time.Second)))}
	}
	slices.SortFunc(ramp, func(a, b Step) int { return a.Percent - b.Percent })
	return ramp
}

func (h *history) fatalf(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("seed %d at %v, %+v: "+format, append([]any{h.seed, h.now, h.s}, args...)...)
}

// ask is a call that comes.
func (h *history) ask() {
	before := h.s
	tk, wait, ok := h.s.ask(h.now, patience, &h.c)
	h.step(before)
	if wait < 0 || ok && wait != 0 {
		h.fatalf("wait %v, %v", wait, ok)
	}
	if ok && h.now < h.rested {
		h.fatalf("asked although it cools until %v", h.rested)
	}
	if h.s.phase == Ramping {
		h.offered++
	}
	if !ok {
		return
	}
	h.out = append(h.out, tk)
	switch tk.phase {
	case Probing:
		h.probed(tk)
	case Ramping:
		h.let++
		h.inShare()
	}
}

// probed checks that no other probe is out that is not lost.
func (h *history) probed(tk ticket) {
	for _, o := range h.out[:len(h.out)-1] {
		if o.phase == Probing && o.gen == h.probeGen && h.now < h.probes[0] {
			h.fatalf("two probes at once")
		}
	}
	h.probeGen, h.probes = tk.gen, []time.Duration{h.now + patience}
}

// step notices that another step of the ramp has begun.
func (h *history) step(before state) {
	at := ticket{gen: h.s.gen, phase: h.s.phase, step: h.s.step}
	if at != h.at || before.phase != h.s.phase {
		h.at, h.offered, h.let, h.returned = at, 0, 0, 0
	}
}

// inShare: of n calls in a step no more get through than its share of them, and
// one for what was left of the step before.
func (h *history) inShare() {
	p := h.c.Ramp[h.s.step].Percent
	if h.let-h.returned > (h.offered*p+99)/100+1 {
		h.fatalf("%d of %d calls were let through in a step of %d%%, %d came back", h.let, h.offered, p, h.returned)
	}
}

// end is a call that ends, whichever.
func (h *history) end(v verdict) {
	i := h.r.IntN(len(h.out))
	tk := h.out[i]
	h.out = slices.Delete(h.out, i, i+1)
	before := h.s
	h.s.hear(h.now, &h.c, tk, v)
	same := tk.gen == h.s.gen && tk.phase == Ramping && h.s.phase == Ramping && tk.step == h.s.step
	if v.kind == unused && same {
		h.returned++
	}
	h.step(before)
	if v.kind == broken && v.after >= h.c.Cool.First {
		h.rested = h.now + min(v.after, h.c.Cool.Hint)
	}
	if h.s.out < 0 || h.s.inARow >= h.c.Failures || h.s.spell > h.c.Cool.Most {
		h.fatalf("out of bounds")
	}
	if h.s.phase == Cooling && h.s.until-h.now > max(h.c.Cool.Hint, h.c.Cool.Most) {
		h.fatalf("cools for %v", h.s.until-h.now)
	}
}

func (h *history) verdict() verdict {
	switch h.r.IntN(10) {
	case 0:
		return verdict{kind: nothing}
	case 1:
		return verdict{kind: unused}
	case 2:
		return verdict{kind: lives}
	case 3:
		return verdict{kind: shut, after: time.Duration(h.r.Int64N(int64(time.Minute)))}
	case 4:
		return verdict{kind: broken, after: time.Duration(h.r.Int64() >> h.r.IntN(40))}
	case 5, 6:
		return verdict{kind: broken}
	}
	return verdict{kind: works}
}

func (h *history) wild(steps int) {
	for range steps {
		switch n := h.r.IntN(10); {
		case n < 5:
			h.ask()
		case n < 9 && len(h.out) > 0:
			h.end(h.verdict())
		default:
			h.now += time.Duration(h.r.Int64() >> (20 + h.r.IntN(40)) % int64(2*time.Minute))
		}
	}
}

// recovers: from any state one caller brings a healthy tier back to 100 % within
// the cooling, the lost probe, and the steps, each prolonged by calls that are lost.
func (h *history) recovers(every time.Duration) {
	bound := every * time.Duration(4+2*len(h.c.Ramp))
	if h.s.phase == Cooling {
		bound += max(0, h.s.until-h.now)
	}
	if h.s.phase == Probing { // then it cools for as long as was asked for meanwhile
		bound += max(0, h.s.rest-h.now)
	}
	bound += patience
	for _, s := range h.c.Ramp {
		bound += s.For + h.c.Probe
	}
	for begin := h.now; ; h.now += every {
		if h.now-begin > bound {
			h.fatalf("not up %v after it was healthy", bound)
		}
		if tk, _, ok := h.s.ask(h.now, patience, &h.c); ok {
			h.s.hear(h.now, &h.c, tk, verdict{kind: works})
		}
		if h.s.phase == Up {
			return
		}
	}
}

func TestAnyHistory(t *testing.T) {
	first := rand.Uint64()
	for i := range uint64(5000) {
		h := newHistory(t, first+i)
		h.wild(400)
		h.recovers(time.Duration(1 + h.r.Int64N(int64(2*time.Second))))
	}
}

// Without lost calls, and with the default ramp, a healthy tier is back 15 s after
// its cooling, however seldom it is called: at the first call after that.
func TestRecoveryTakesFifteenSeconds(t *testing.T) {
	first := rand.Uint64()
	for i := range uint64(1000) {
		r := rand.New(rand.NewPCG(first+i, 0))
		c := Config{}.WithDefaults()
		var s state
		now := time.Hour
		s.cool(now, 0, FailuresInARow, &c)
		began, every := s.until, time.Duration(1+r.Int64N(int64(20*time.Second)))
		for s.phase != Up {
			now += every
			if tk, _, ok := s.ask(now, patience, &c); ok {
				s.hear(now, &c, tk, verdict{kind: works})
			}
		}
		if took := now - began; took > 15*time.Second+2*every {
			t.Fatalf("seed %d: a call every %v: up %v after cooling", first+i, every, took)
		}
	}
}

// In a step of p % that does not end, exactly p of every 100 calls get through,
// evenly: of any n in a row at most n*p/100 rounded up.
func TestShareIsExact(t *testing.T) {
	for p := 1; p <= 100; p++ {
		c := Config{Ramp: []Step{{Percent: p, Successes: 1 << 30, For: time.Hour}}}.WithDefaults()
		var s state
		s.ramp(time.Hour, &c)
		var let []int // how many before call i
		n := 0
		for range 1000 {
			let = append(let, n)
			if _, _, ok := s.ask(time.Hour, patience, &c); ok {
				n++
			}
		}
		if n != 10*p || let[1] != 1 {
			t.Fatalf("%d%%: %d of 1000 calls, %d of the first one", p, n, let[1])
		}
		for i := range let {
			for j := i + 1; j < len(let); j += 7 {
				if got := let[j] - let[i]; got > ((j-i)*p+99)/100 {
					t.Fatalf("%d%%: %d of the %d calls from %d on", p, got, j-i, i)
				}
			}
		}
	}
}

// A tier that is down for good is asked 3 times, and then at most once in each
// cooling: after 1, 2, 4 ... seconds, 60 at the most.
func TestDownForGood(t *testing.T) {
	c := Config{}.WithDefaults()
	var s state
	var asked []time.Duration
	for now := time.Duration(0); now < 10*time.Minute; now += 10 * time.Millisecond {
		if tk, _, ok := s.ask(now, patience, &c); ok {
			asked = append(asked, now)
			s.hear(now, &c, tk, verdict{kind: broken})
		}
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if got := (asked[i+3] - asked[i+2]).Round(time.Second); got != want*time.Second {
			t.Errorf("cooling %d took %v, want %vs", i+1, got, want)
		}
	}
}

// trippedAt is a state that cools from now on, for a second.
func trippedAt(now time.Duration, c *Config) (s state) {
	s.cool(now, 0, FailuresInARow, c)
	return s
}

// A call of before the cooling brings a hint while the probe is out. The probe
// stays the only one, and after it the hint is obeyed, whatever the probe found.
func TestHintDuringAProbe(t *testing.T) {
	for _, kind := range []kind{works, lives, nothing, unused, broken, shut} {
		c := Config{}.WithDefaults()
		var s state
		old, _, _ := s.ask(0, patience, &c)
		s.cool(0, 0, FailuresInARow, &c)
		now := time.Second
		probe, _, _ := s.ask(now, patience, &c)
		s.hear(now, &c, old, verdict{kind: broken, after: 5 * time.Second})
		if _, _, ok := s.ask(now+6*time.Second, patience, &c); ok || s.phase != Probing {
			t.Fatalf("%d: a second probe", kind)
		}
		s.hear(now, &c, probe, verdict{kind: kind})
		if _, wait, ok := s.ask(now, patience, &c); ok || s.phase != Cooling || wait != 5*time.Second {
			t.Errorf("%d: %+v, wait %v, want 5s", kind, s, wait)
		}
	}
}

func TestHintDuringALostProbe(t *testing.T) {
	c := Config{}.WithDefaults()
	var s state
	old, _, _ := s.ask(0, patience, &c)
	s.cool(0, 0, FailuresInARow, &c)
	s.ask(time.Second, patience, &c)
	s.hear(time.Second, &c, old, verdict{kind: broken, after: time.Minute})
	if _, wait, ok := s.ask(time.Second+patience, patience, &c); ok || wait != time.Minute-patience {
		t.Errorf("got %v, %v, want a wait of %v", wait, ok, time.Minute-patience)
	}
}

// Places that come back all at once are not given away all at once.
func TestPlacesThatComeBackMakeNoBurst(t *testing.T) {
	c := Config{Ramp: []Step{{Percent: 50, Successes: 1000, For: time.Hour}}}.WithDefaults()
	var s state
	s.ramp(0, &c)
	let := func(n int) (got []ticket) {
		for range n {
			if tk, _, ok := s.ask(0, patience, &c); ok {
				got = append(got, tk)
			}
		}
		return got
	}
	for _, tk := range let(20) {
		s.hear(0, &c, tk, verdict{kind: unused})
	}
	if n := len(let(20)); n != 11 {
		t.Errorf("%d of the next 20 calls, want 11", n)
	}
}

// A success of a step that is over does not count for the next one.
func TestSuccessesCountForTheirStep(t *testing.T) {
	c := Config{Ramp: []Step{{Percent: 100, Successes: 1, For: time.Hour}, {Percent: 100, Successes: 1, For: time.Hour}}}.WithDefaults()
	var s state
	s.ramp(0, &c)
	one, _, _ := s.ask(0, patience, &c)
	two, _, _ := s.ask(0, patience, &c)
	for range 2 {
		s.hear(0, &c, one, verdict{kind: works})
		s.hear(0, &c, two, verdict{kind: works})
		if s.phase != Ramping || s.step != 1 || s.out != 0 {
			t.Fatalf("got %+v, want the second step", s)
		}
	}
}

func TestCoolingLastsToItsEnd(t *testing.T) {
	c := Config{}.WithDefaults()
	s := trippedAt(0, &c)
	if _, wait, ok := s.ask(time.Second-1, patience, &c); ok || wait != 1 {
		t.Errorf("asked before its end: %v, %v", wait, ok)
	}
	if _, _, ok := s.ask(time.Second, patience, &c); !ok {
		t.Error("not asked at its end")
	}
}
