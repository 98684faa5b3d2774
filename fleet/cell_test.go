package fleet

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A part is the units of one grant, minus returned units. Returned units were never used.
type part struct {
	at   int64
	n    int64 // used units, unless they return
	mark Mark
}

// A story is a cell and its operations. It is judged at the end, when the used units are known.
type story struct {
	rng   *rand.Rand
	cell  *Cell
	now   int64 // the store's clock
	at    int64 // the latest instant of an operation on the cell
	floor int64 // lower bound of the clock, since the cell was dropped
	form  int
	moody int // how often the limit changes

	steady bool // the clock never runs backwards
	rules  []Rule
	parts  []*part
	tape   []func(v *truth) error
}

// A truth is a textbook leaky bucket in exact arithmetic.
type truth struct {
	rate, level *big.Rat
	at          int64
}

func (v *truth) drain(now int64) {
	v.level.Sub(v.level, new(big.Rat).Mul(v.rate, big.NewRat(max(0, now-v.at), 1)))
	if v.level.Sign() < 0 {
		v.level.SetInt64(0)
	}
	v.at = max(v.at, now)
}

func newStory(rng *rand.Rand, rules []Rule) *story {
	return &story{rng: rng, cell: &Cell{}, now: rng.Int64N(1<<50) + 1, moody: 1 + rng.IntN(4), rules: rules}
}

func (s *story) rule() *Rule { return &s.rules[s.form] }

// windows returns the calendar windows of a form. Their begins differ by form.
func (s *story) windows() limit.Windows {
	per := max(3, s.rules[0].Ring.Grain*bucket.Slots)
	start := s.now - (s.now+int64(s.form)*per/3)%per
	return limit.Windows{Start: time.UnixMicro(start), End: time.UnixMicro(start + per), Next: time.UnixMicro(start + 2*per)}
}

// then adds an event at the latest instant to the tape.
func (s *story) then(f func(v *truth) error) { s.tape = append(s.tape, f) }

func (s *story) judge() error {
	v := truth{rate: new(big.Rat), level: new(big.Rat)}
	for _, f := range s.tape {
		if err := f(&v); err != nil {
			return err
		}
	}
	return nil
}

// step does one random operation.
func (s *story) step() {
	switch s.rng.IntN(10) {
	case 0, 1, 2:
		s.pass()
	case 3:
		if s.rng.IntN(4) < s.moody {
			s.form = s.rng.IntN(len(s.rules))
		}
	case 4, 5:
		s.giveBack()
	case 6:
		if s.cell.Idle(allIn(s.now)) && s.now >= s.at {
			s.cell, s.floor = &Cell{}, s.now // dropped, and created again by the next request
		}
	default:
		s.take()
	}
}

// pass advances the clock, and sometimes sets it back.
func (s *story) pass() {
	span := int64(1e5)
	if r := s.rule(); r.Shape == limit.Bucket {
		span = r.Meter.Empty(bucket.Fill{Weight: r.Meter.Cap}) + 2
	} else {
		span = r.Ring.Grain*bucket.Slots + 2
	}
	d := s.rng.Int64N(upTo(s.rng, span))
	if !s.steady && s.rng.IntN(12) == 0 {
		d = -d
	}
	s.now = max(1, s.floor, s.now+d)
}

func (s *story) take() {
	r := s.rule()
	k := Claim{Rule: r, Cost: upTo(s.rng, max(1, r.Most())), Windows: s.windows()}
	if s.rng.IntN(3) == 0 {
		k.Extra = upTo(s.rng, max(1, r.Most()))
	}
	a := Ask{Copies: s.rng.Int64N(4), Claims: []Claim{k}}
	a.Answer(allIn(s.now), []*Cell{s.cell})
	s.at = max(s.at, s.now)
	p := &part{at: s.at, n: a.Granted*k.Cost + a.Grants[0].Extra, mark: a.Grants[0].Mark}
	switch r.Shape {
	case limit.Rolling:
		p.at = s.now // a slot is never before the clock, even if that runs backwards
	case limit.Calendar:
		p.at = max(s.now, s.cell.Start) // the latest window contains the clock
	}
	if p.n > 0 {
		s.parts = append(s.parts, p)
	}
	s.uses(p)
}

// giveBack returns some units of a part, the last ones first.
func (s *story) giveBack() {
	if len(s.parts) == 0 {
		return
	}
	i := s.rng.IntN(len(s.parts))
	p := s.parts[i]
	n := 1 + s.rng.Int64N(p.n)
	x := Settlement{Rule: s.rule(), Windows: s.windows(), Back: n, Mark: p.mark}
	if r := s.rule(); r.Shape == limit.Bucket && s.rng.IntN(2) == 0 {
		x.Mark.Step = r.Meter.Unit // as a process may set it that knows the changed limit
	}
	if s.rng.IntN(10) == 0 {
		x.Pause = time.Duration(s.rng.Int64N(1e6))
	}
	s.cell.Settle(allIn(s.now), &x)
	s.at = max(s.at, s.now)
	s.rates()
	p.n -= n
	p.mark.Level -= n * p.mark.Step
	if p.n == 0 {
		s.parts = slices.Delete(s.parts, i, i+1)
	}
}

// rates records the rate in force from now on.
func (s *story) rates() {
	if r := s.rule(); r.Shape == limit.Bucket {
		at, rate := s.at, big.NewRat(r.Meter.Drain, r.Meter.Unit)
		s.then(func(v *truth) error {
			v.drain(at)
			v.rate = rate
			return nil
		})
	}
}

// uses records used units, and checks at the end that they were available.
func (s *story) uses(p *part) {
	s.rates()
	r := s.rule()
	if r.Shape != limit.Bucket {
		return
	}
	burst := big.NewRat(r.Meter.Cap, r.Meter.Unit)
	s.then(func(v *truth) error {
		if p.n == 0 {
			return nil
		}
		if v.level.Add(v.level, units(p.n)); v.level.Cmp(burst) > 0 {
			return fmt.Errorf("at %d: %s units in a burst of %s", p.at, v.level.FloatString(9), burst.FloatString(9))
		}
		return nil
	})
}

func anyBuckets(rng *rand.Rand) (all []Rule) {
	for range 1 + rng.IntN(3) {
		m := bucket.MeterOf(anyRate(rng))
		if rng.IntN(3) == 0 {
			m.Cap -= rng.Int64N(m.Cap/2 + 1) // as a fleet withholds some of the burst
		}
		if m.Cap < m.Unit {
			m.Cap = m.Unit
		}
		all = append(all, Rule{Shape: limit.Bucket, Meter: m})
	}
	if len(all) > 1 && rng.IntN(2) == 0 { // the same unit, drained faster
		all[1].Meter = all[0].Meter
		all[1].Meter.Drain = 1 + rng.Int64N(2*all[0].Meter.Drain)
	}
	return all
}

// TestNoStoryGoesOverTheLimit takes units, returns them and changes the limit, with any clock. No window of the
// store's time contains more than the burst and the rate allow. Conversions that need more than 53 bits are
// excluded.
func TestNoStoryGoesOverTheLimit(t *testing.T) {
	cases(t, 3000, func(rng *rand.Rand) error {
		s := newStory(rng, anyBuckets(rng))
		for _, a := range s.rules {
			for _, b := range s.rules {
				if float64(a.Meter.Cap)/float64(a.Meter.Unit)*float64(b.Meter.Unit) > 1<<52 {
					s.rules = s.rules[:1]
				}
			}
		}
		for range 150 {
			s.step()
		}
		return s.judge()
	})
}

// TestWhatComesBackAtOnceWasNeverTaken returns all units of the last grant before the clock advances. The cell
// is as before, and grants exactly as many units as the bucket has room for.
func TestWhatComesBackAtOnceWasNeverTaken(t *testing.T) {
	cases(t, 2000, func(rng *rand.Rand) error {
		r := Rule{Shape: limit.Bucket, Meter: bucket.MeterOf(anyRate(rng))}
		s := newStory(rng, []Rule{r})
		v := truth{rate: big.NewRat(r.Meter.Drain, r.Meter.Unit), level: new(big.Rat)}
		for range 40 {
			if s.pass(); s.now < s.at {
				s.now = s.at
			}
			v.drain(s.now)
			a := Ask{Copies: 1, Claims: []Claim{{Rule: &r, Cost: upTo(rng, r.Most())}}}
			a.Answer(allIn(s.now), []*Cell{s.cell})
			g := a.Grants[0]
			if a.Granted == 1 && rng.IntN(2) == 0 {
				s.cell.Settle(allIn(s.now), &Settlement{Rule: &r, Back: a.Claims[0].Cost, Mark: g.Mark})
				a.Copies, g.Left = 0, g.Left+a.Claims[0].Cost
			} else if a.Granted == 1 {
				v.level.Add(v.level, units(a.Claims[0].Cost))
			}
			if want := freeOf(&v, r.Most()); g.Left != want {
				return fmt.Errorf("%+v: %d left, want %d", r.Meter, g.Left, want)
			}
		}
		return nil
	})
}

// freeOf returns the number of whole units for which a bucket has room.
func freeOf(v *truth, burst int64) int64 {
	room := new(big.Rat).Sub(units(burst), v.level)
	return new(big.Int).Quo(room.Num(), room.Denom()).Int64()
}

// counted returns rules of a counting shape, with windows of several lengths.
func counted(rng *rand.Rand, shape limit.Shape) (rules []Rule) {
	per := time.Duration(upTo(rng, int64(100*24*time.Hour)) + 1e6)
	for i := range 1 + rng.IntN(3) {
		w := bucket.Window{Amount: upTo(rng, 1e6), Per: per}
		if i > 0 && shape == limit.Rolling {
			w.Per = time.Duration(upTo(rng, int64(2*per)) + 1e6)
		}
		rules = append(rules, Rule{Shape: shape, Amount: w.Amount, Ring: bucket.RingOf(w)})
	}
	return rules
}

// TestNoWindowHasMoreThanItsAmount is the same for counting shapes. A unit counts until the window in force has
// once passed it.
func TestNoWindowHasMoreThanItsAmount(t *testing.T) {
	for _, shape := range []limit.Shape{limit.Rolling, limit.Calendar} {
		cases(t, 2000, func(rng *rand.Rand) error {
			s := newStory(rng, counted(rng, shape))
			for range 150 {
				s.step()
				if err := s.count(); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// count checks the window that ends now. Units that return later count as used until then.
func (s *story) count() error {
	r, w := s.rule(), s.windows()
	from := s.now - bucket.Slots*r.Ring.Grain
	if r.Shape == limit.Calendar {
		from = w.Start.UnixMicro() - 1
	}
	s.parts = slices.DeleteFunc(s.parts, func(p *part) bool { return p.at <= from })
	var sum int64
	for _, p := range s.parts {
		sum += p.n
	}
	look := Ask{Claims: []Claim{{Rule: r, Cost: 1, Windows: w}}}
	look.Answer(allIn(s.now), []*Cell{s.cell})
	if r.Shape == limit.Calendar && s.now < s.at {
		return nil // the clock ran backwards, so the current window is still the latest
	}
	s.at = max(s.at, s.now)
	if left := look.Grants[0].Left; left > max(0, r.Amount-sum) {
		return fmt.Errorf("%v at %d: %d left of %d when %d are gone", r.Shape, s.now, left, r.Amount, sum)
	}
	return nil
}

// TestWaitAndResetAreExact checks that units are available at the predicted instant, and not a microsecond
// earlier.
func TestWaitAndResetAreExact(t *testing.T) {
	cases(t, 3000, func(rng *rand.Rand) error {
		rules := anyBuckets(rng)
		if rng.IntN(2) == 0 {
			rules = counted(rng, limit.Rolling+limit.Shape(rng.IntN(2)))
		}
		s := newStory(rng, rules)
		s.steady = rules[0].Shape == limit.Calendar && len(rules) > 1
		for range 30 {
			s.step()
		}
		r := s.rule()
		if r.Meter.Cap > 0 && r.Most() == 0 {
			return nil
		}
		s.cell.Settle(allIn(s.now), &Settlement{Rule: r, Windows: s.windows(), Owe: upTo(rng, 20*r.Most())})
		k := Claim{Rule: r, Cost: upTo(rng, r.Most()), Windows: s.windows()}
		return s.exactly(k)
	})
}

// look returns the grant of a claim at another instant, without changing the story.
func (s *story) look(at int64, k Claim) Grant {
	c := *s.cell
	c.Slots = slices.Clone(c.Slots)
	s.now, at = at, s.now
	k.Windows = s.windows()
	s.now, at = at, s.now
	a := Ask{Claims: []Claim{k}}
	a.Answer(allIn(at), []*Cell{&c})
	return a.Grants[0]
}

func (s *story) exactly(k Claim) error {
	g := s.look(s.now, k)
	if g.Wait > 0 {
		at := s.now + g.Wait.Microseconds()
		if early := s.look(at-1, k); early.Wait != time.Microsecond {
			return fmt.Errorf("%+v: wait %v; a microsecond before it is %v", k, g.Wait, early.Wait)
		}
		if late := s.look(at, k); late.Wait != 0 || late.Left < k.Cost {
			return fmt.Errorf("%+v: wait %v; then it is %v with %d left", k, g.Wait, late.Wait, late.Left)
		}
	} else if g.Left < k.Cost {
		return fmt.Errorf("%+v: no wait with %d left", k, g.Left)
	}
	at := s.now + g.Reset.Microseconds()
	if late := s.look(at, k); late.Left != k.Rule.Most() {
		return fmt.Errorf("%+v: reset %v; then %d of %d are left", k, g.Reset, late.Left, k.Rule.Most())
	}
	return nil
}

// TestACellKeepsWithinADouble checks that all numbers have at most 53 bits, as scripts need.
func TestACellKeepsWithinADouble(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		rules := anyBuckets(rng)
		rules = append(rules, Rule{Shape: limit.Rolling, Amount: 1 << 40, Ring: bucket.Ring{Amount: 1 << 40, Grain: 1 + rng.Int64N(1e9)}}, Rule{Shape: limit.Calendar, Amount: 1 << 48})
		rules[0].Ring.Grain = 1 + rng.Int64N(1e9)
		s := newStory(rng, rules)
		for range 100 {
			s.step()
			k := Claim{Rule: s.rule(), Windows: s.windows(), Seen: 1 + rng.Int64N(math.MaxInt64)}
			(&Ask{Claims: []Claim{k}}).Answer(allIn(s.now), []*Cell{s.cell})
			s.cell.Settle(allIn(s.now), &Settlement{Rule: s.rule(), Windows: s.windows(), Owe: 1 + rng.Int64N(math.MaxInt64), Pause: time.Duration(rng.Int64N(math.MaxInt64))})
			c := s.cell
			for range 5 { // return all units
				if r := s.rule(); r.Shape == limit.Bucket {
					mark := c.mark(r)
					c.Settle(allIn(s.now), &Settlement{Rule: r, Back: 40 * r.Most(), Mark: mark})
					c.Settle(allIn(s.now), &Settlement{Rule: r, Owe: 20 * r.Most()})
				}
			}
			for _, n := range []int64{c.Fill.Weight, c.Fill.Weight + c.Returned, c.Count, c.Paused} {
				if n < 0 || n > 1<<53 {
					return fmt.Errorf("%+v", c)
				}
			}
		}
		return nil
	})
}

// TestAnotherShapeKeepsWhatHasGone checks that units in use count as used at the instant when the limit changes
// its shape.
func TestAnotherShapeKeepsWhatHasGone(t *testing.T) {
	const now = 1e15
	per := time.Hour
	rules := []Rule{
		{Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: 10, Per: per, Burst: 10})},
		{Shape: limit.Rolling, Amount: 10, Ring: bucket.RingOf(bucket.Window{Amount: 10, Per: per})},
		{Shape: limit.Calendar, Amount: 10},
	}
	w := limit.Windows{Start: time.UnixMicro(now - 5), End: time.UnixMicro(now + 3.6e9), Next: time.UnixMicro(now + 7.2e9)}
	for _, from := range rules {
		for _, to := range rules {
			c := new(Cell)
			for i, r := range []*Rule{&from, &to} {
				a := Ask{Copies: 7, Claims: []Claim{{Rule: r, Cost: 1, Windows: w}}}
				a.Answer(allIn(now), []*Cell{c})
				if want := []int64{7, 3}[i]; a.Granted != want {
					t.Errorf("%v, then %v: granted %d, want %d", from.Shape, to.Shape, a.Granted, want)
				}
			}
		}
	}
}

func TestAMarkNamesItsGrain(t *testing.T) {
	r := Rule{Shape: limit.Rolling, Amount: 10, Ring: bucket.Ring{Amount: 10, Grain: 1000}}
	c := Cell{Shape: limit.Rolling, Count: 7, Slots: []Slot{{1000, 4, 999}, {1000, 3, 1000}}}
	c.Settle(allIn(1_000_500), &Settlement{Rule: &r, Back: 5, Mark: Mark{At: 1000, Level: 1000}})
	if len(c.Slots) != 1 || c.Count != 4 {
		t.Errorf("%+v, want what went by the grain of 999 and nothing else", c)
	}
}

func TestAPauseIsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{1: 1, 999: 1, 1000: 1, 1001: 2, math.MaxInt64: math.MaxInt64/1000 + 1} {
		if got := ceilMicros(d); got != want {
			t.Errorf("%d ns: %d us, want %d", d, got, want)
		}
	}
}

// TestAChangeVoidsMarksOfItsInstant checks marks from the instant of a change. The earlier returns and the
// positions of units taken before are unknown then.
func TestAChangeVoidsMarksOfItsInstant(t *testing.T) {
	slow := Rule{Shape: limit.Bucket, Meter: bucket.Meter{Unit: 100, Drain: 1, Cap: 1000}}
	fast := Rule{Shape: limit.Bucket, Meter: bucket.Meter{Unit: 100, Drain: 2, Cap: 1000}}
	c := new(Cell)
	take := func(now int64, r *Rule, n int64) Mark {
		a := Ask{Copies: 1, Claims: []Claim{{Rule: r, Cost: n}}}
		a.Answer(allIn(now), []*Cell{c})
		return a.Grants[0].Mark
	}
	const now = 1e15
	first, second := take(now, &slow, 5), take(now, &slow, 5)
	c.Settle(allIn(now), &Settlement{Rule: &slow, Back: 5, Mark: first})
	take(now, &fast, 3)
	c.Settle(allIn(now+250), &Settlement{Rule: &fast, Back: 5, Mark: second})
	if left := c.left(allIn(now+250), &fast); left != 7 {
		t.Errorf("%d left when 3 of 10 have not run out, want 7", left)
	}
}
