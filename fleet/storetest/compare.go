package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Compare drives two stores through the same random history and fails at the first answer that differs. Both stores
// share one clock, which only advance moves. The history contains all shapes, limits that change, asks with several
// claims, settlements of earlier grants, pauses, repeats, windows that have passed, records and clients. A failure
// prints the seed and the step.
//
// Marks and versions of records may differ between the stores. Each store gets its own values back.
func Compare(t testing.TB, a, b fleet.Store, advance func(d time.Duration), seed uint64, steps int) {
	t.Helper()
	h := newHistory(a, b, seed)
	if err := h.touch(); err != nil {
		t.Fatalf("seed %#x: %v", seed, err)
	}
	for step := range steps {
		if err := h.step(advance); err != nil {
			t.Fatalf("seed %#x, step %d: %v", seed, step, err)
		}
	}
}

var compared = []string{"k", "another", "ü{}\x00"}

// touch reads every limit and key before any units are granted. A store may report fewer units for a limit that is
// new to it, or that it forgot because it was full, while many are granted.
func (h *history) touch() error {
	now, err := h.now()
	if err != nil {
		return err
	}
	for _, s := range h.limits {
		for _, key := range compared {
			k := s.forms[0].claim(now, 1)
			k.Key = key
			a := &fleet.Ask{Group: h.group, ID: h.rng.Uint64() | 1, Lane: h.lanes[0], Claims: []fleet.Claim{k}}
			b := *a
			if err := h.both(&pair{a, &b}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// A history is the work that was sent to both stores.
type history struct {
	rng    *rand.Rand
	stores [2]fleet.Store
	group  string
	begin  time.Time
	brisk  bool
	limits []*shapes
	had    []had
	lanes  []uint64
	last   map[uint64]*pair // the latest ask of each lane
	swaps  map[string][2]int64
	beats  map[string]*process
}

// shapes are the versions of one limit. One version applies at a time.
type shapes struct {
	forms []*shape
	form  int
}

// had is a grant with unused units.
type had struct {
	shape *shape
	key   string
	n     int64
	marks [2]fleet.Mark
}

// A pair is one ask in two copies, one per store.
type pair [2]*fleet.Ask

func newHistory(a, b fleet.Store, seed uint64) *history {
	h := &history{
		rng: rand.New(rand.NewPCG(seed, 1)), stores: [2]fleet.Store{a, b}, group: fmt.Sprintf("compare %016x", rand.Uint64()),
		last: make(map[uint64]*pair), swaps: make(map[string][2]int64), beats: make(map[string]*process),
	}
	if _, now, err := a.Load(context.Background(), h.group, nil); err == nil {
		h.begin = now.Truncate(time.Microsecond).Add(-time.Duration(h.rng.Int64N(1e9)) * time.Microsecond)
	}
	h.brisk = h.rng.IntN(2) == 0
	for i := range 3 {
		h.limits = append(h.limits, h.buckets(fmt.Sprint("bucket", i)), h.rollings(fmt.Sprint("rolling", i)), h.fixeds(fmt.Sprint("fixed", i)))
		h.lanes = append(h.lanes, h.rng.Uint64())
	}
	return h
}

var periods = []time.Duration{time.Millisecond, 3 * time.Millisecond / 2, time.Second, time.Minute, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour}

// upTo returns a number from 1 to n, of any order of magnitude.
func upTo(rng *rand.Rand, n int64) int64 {
	v := int64(1)
	for v < n/16 && rng.IntN(4) > 0 {
		v *= 1 + rng.Int64N(16)
	}
	return 1 + rng.Int64N(min(v, n))
}

func (h *history) period() time.Duration { return periods[h.rng.IntN(len(periods))] }

func (h *history) buckets(name string) *shapes {
	var s shapes
	for len(s.forms) < 3 {
		r := bucket.Rate{Amount: upTo(h.rng, 1e9), Per: h.period(), Burst: upTo(h.rng, 1e7)}
		if r.Validate() == nil {
			s.forms = append(s.forms, bucketOf(name, r.Amount, r.Per, r.Burst))
			s.forms[len(s.forms)-1].rule.Hold = h.hold()
		}
	}
	return &s
}

func (h *history) rollings(name string) *shapes {
	var s shapes
	for range 3 {
		s.forms = append(s.forms, rollingOf(name, upTo(h.rng, 1e9), h.period()))
		s.forms[len(s.forms)-1].rule.Hold = h.hold()
	}
	return &s
}

// hold returns how long the grants of one form remain usable. All forms get 0 if a store forgets full limits: it
// then forgets the longest hold as well, and need not charge for a change to a shorter one.
func (h *history) hold() int64 {
	if _, keeps := h.stores[0].(*fleet.Memory); !keeps {
		return 0
	}
	return []int64{0, 0, upTo(h.rng, 1e5), upTo(h.rng, 2e6)}[h.rng.IntN(4)]
}

func (h *history) fixeds(name string) *shapes {
	per := h.period()
	var s shapes
	for i := range 3 {
		f := &shape{name: name, full: upTo(h.rng, 1e9), begin: h.begin, period: per}
		if i == 2 && h.rng.IntN(2) == 0 {
			f.begin = f.begin.Add(per / 3) // another time zone
		}
		f.rule = &fleet.Rule{Name: name, Shape: limit.Calendar, Amount: f.full}
		s.forms = append(s.forms, f)
	}
	return &s
}

// step does one random thing to both stores.
func (h *history) step(advance func(d time.Duration)) error {
	switch h.rng.IntN(12) {
	case 0, 1, 2:
		advance(h.pause())
		return nil
	case 3:
		return h.swap()
	case 4:
		return h.beat()
	case 5:
		s := h.limits[h.rng.IntN(len(h.limits))]
		if h.rng.IntN(3) == 0 {
			s.form = h.rng.IntN(len(s.forms))
		}
		return nil
	case 6:
		lane := h.lanes[h.rng.IntN(len(h.lanes))]
		if last := h.last[lane]; last != nil {
			return h.both(&pair{again(last[0]), again(last[1])}, last)
		}
		return nil
	}
	return h.take()
}

// pause returns a random length up to the period of a limit. In a brisk history it returns less than a second,
// which matters to beats.
func (h *history) pause() time.Duration {
	if h.brisk {
		return time.Duration(h.rng.Int64N(int64(time.Second))).Truncate(time.Microsecond)
	}
	d := time.Duration(upTo(h.rng, int64(h.period())))
	return d.Truncate(time.Microsecond)
}

func (h *history) now() (time.Time, error) {
	_, now, err := h.stores[0].Load(context.Background(), h.group, nil)
	return now, err
}

func (h *history) take() error {
	now, err := h.now()
	if err != nil {
		return err
	}
	lane := h.lanes[h.rng.IntN(len(h.lanes))]
	a := &fleet.Ask{Group: h.group, ID: h.rng.Uint64() | 1, Lane: lane, Copies: h.rng.Int64N(6)}
	for _, i := range h.rng.Perm(len(h.limits))[:1+h.rng.IntN(4)] {
		a.Claims = append(a.Claims, h.claim(h.limits[i], now))
	}
	b := *a
	p := &pair{a, &b}
	for range h.rng.IntN(3) {
		h.settlement(p, now)
	}
	if err := h.both(p, nil); err != nil {
		return err
	}
	if len(p[0].Grants) == 0 {
		return nil // the ask was refused, but its repeat might be granted
	}
	if h.last[lane] = p; h.rng.IntN(8) == 0 { // as if the first answer had been late
		return h.both(&pair{again(p[0]), again(p[1])}, p)
	}
	return nil
}

func (h *history) claim(s *shapes, now time.Time) fleet.Claim {
	f := s.forms[s.form]
	if h.rng.IntN(8) == 0 {
		now = now.Add(-f.period) // it names the previous window, and the present one as the next
	}
	if h.rng.IntN(50) == 0 {
		now = now.Add(time.Duration(h.rng.IntN(9)-4) * f.period)
	}
	k := f.claim(now, 0)
	k.Key = compared[h.rng.IntN(len(compared))]
	if h.rng.IntN(10) > 0 {
		k.Cost = upTo(h.rng, f.full+f.full/10+1)
	}
	if h.rng.IntN(3) == 0 {
		k.Extra = upTo(h.rng, f.full)
	}
	if h.rng.IntN(10) == 0 {
		k.Seen, k.SeenBack = h.rng.Int64N(f.full+1), h.rng.Int64N(3)
	}
	return k
}

// settlement adds a settlement to both asks.
func (h *history) settlement(p *pair, now time.Time) {
	var s [2]fleet.Settlement
	s[0] = h.limits[h.rng.IntN(len(h.limits))].settled(h.rng, now)
	s[1] = s[0]
	if n := len(h.had); n > 0 && h.rng.IntN(5) > 0 {
		i := h.rng.IntN(n)
		part := &h.had[i]
		back := 1 + h.rng.Int64N(part.n)
		for j := range s {
			// The shape may have changed since the grant, as it may for a process.
			s[j] = part.shape.settlement(now, back, part.marks[j])
			s[j].Key = part.key
			part.marks[j].Level -= back * part.marks[j].Step
		}
		if part.n -= back; part.n == 0 || n > 50 {
			h.had[i] = h.had[n-1]
			h.had = h.had[:n-1]
		}
	}
	p[0].Settle, p[1].Settle = append(p[0].Settle, s[0]), append(p[1].Settle, s[1])
}

func (s *shapes) settled(rng *rand.Rand, now time.Time) fleet.Settlement {
	f := s.forms[s.form]
	x := f.settlement(now, 0, fleet.Mark{})
	switch rng.IntN(4) {
	case 0:
		x.Pause = time.Duration(upTo(rng, int64(time.Hour))).Truncate(time.Microsecond)
	case 1:
		x.Owe = upTo(rng, 2*f.full)
	case 2:
		x.Owe = upTo(rng, 40*f.full) // more debt than a store keeps
	}
	return x
}

// both sends the ask to both stores and compares their answers. first is not nil for a repeat.
func (h *history) both(p, first *pair) error {
	var errs [2]error
	for i, s := range h.stores {
		errs[i] = s.Take(context.Background(), p[i])
	}
	if (errs[0] == nil) != (errs[1] == nil) || errors.Is(errs[0], fleet.ErrWindow) != errors.Is(errs[1], fleet.ErrWindow) {
		return fmt.Errorf("take: %v and %v\n%s", errs[0], errs[1], p.text())
	}
	if p[0].Now.UnixMicro() != p[1].Now.UnixMicro() {
		return fmt.Errorf("the clocks say %v and %v", p[0].Now, p[1].Now)
	}
	if errs[0] != nil {
		return nil
	}
	if p[0].Granted != p[1].Granted || len(p[0].Grants) != len(p[1].Grants) {
		return fmt.Errorf("granted %d and %d copies\n%s", p[0].Granted, p[1].Granted, p.text())
	}
	for i := range p[0].Grants {
		if err := h.compare(p, i, first); err != nil {
			return fmt.Errorf("claim %d: %w\n%s", i, err, p.text())
		}
	}
	return nil
}

// compare compares the grants of claim i. It keeps some of them to return their units later.
func (h *history) compare(p *pair, i int, first *pair) error {
	g, o := p[0].Grants[i], p[1].Grants[i]
	marks := [2]fleet.Mark{g.Mark, o.Mark}
	g.Mark, o.Mark = fleet.Mark{}, fleet.Mark{}
	if first != nil {
		for j, m := range marks { // a store may omit the marks of repeats
			if g.Extra != o.Extra || m != (fleet.Mark{}) && m != first[j].Grants[i].Mark {
				return fmt.Errorf("repeats got %+v and %+v, marks %+v", g, o, marks)
			}
		}
		return nil
	}
	if g != o {
		return fmt.Errorf("answers are %+v and %+v", g, o)
	}
	k := p[0].Claims[i]
	n := p[0].Granted*k.Cost + g.Extra
	if n == 0 || h.rng.IntN(2) == 0 {
		return nil
	}
	for _, s := range h.limits {
		if f := s.forms[s.form]; f.rule == k.Rule {
			h.had = append(h.had, had{f, k.Key, n, marks})
		}
	}
	return nil
}

func (p *pair) text() string {
	text := fmt.Sprintf("at %v: %d copies", p[0].Now.UnixMicro(), p[0].Copies)
	for i, s := range p[0].Settle {
		text += fmt.Sprintf("\n\tsettle %s %q: back %d by %+v and %+v, owe %d, pause %v", s.Rule.Name, s.Key, s.Back, s.Mark, p[1].Settle[i].Mark, s.Owe, s.Pause)
	}
	for _, k := range p[0].Claims {
		text += fmt.Sprintf("\n\tclaim %s %q: cost %d, extra %d, seen %d, %+v", k.Rule.Name, k.Key, k.Cost, k.Extra, k.Seen, *k.Rule)
	}
	return text
}

func (h *history) swap() error {
	name := []string{"a", "b", "{}\n\x00"}[h.rng.IntN(3)]
	versions := h.swaps[name]
	r := fleet.Record{Name: name, Value: fmt.Append(nil, h.rng.Uint64()), Keep: 10*time.Millisecond + h.pause()}
	if h.rng.IntN(4) == 0 {
		versions = [2]int64{}
	}
	var now [2]fleet.Record
	var ok [2]bool
	for i, s := range h.stores {
		var err error
		r.Version = versions[i]
		if now[i], ok[i], err = s.Swap(context.Background(), h.group, r); err != nil {
			return fmt.Errorf("swap: %w", err)
		}
	}
	h.swaps[name] = [2]int64{now[0].Version, now[1].Version}
	if ok[0] != ok[1] || !bytes.Equal(now[0].Value, now[1].Value) || (now[0].Version == 0) != (now[1].Version == 0) {
		return fmt.Errorf("swap of %q: %v and %v, %+v and %+v", name, ok[0], ok[1], now[0], now[1])
	}
	return nil
}

// CompareReturns drives two stores through a random history of one bucket that is always short of units. Units
// return early, late or never, so the bucket's history grows as long as it can. CompareReturns fails at the first
// answer that differs.
func CompareReturns(t testing.TB, a, b fleet.Store, advance func(d time.Duration), seed uint64, steps int) {
	t.Helper()
	h := newHistory(a, b, seed)
	rate := bucket.Rate{Amount: 1 + h.rng.Int64N(100_000), Per: time.Second, Burst: 100 + h.rng.Int64N(100_000)}
	f := bucketOf("returns", rate.Amount, rate.Per, rate.Burst)
	f.rule.Hold = h.hold()
	h.limits = []*shapes{{forms: []*shape{f}}}
	fill := float64(rate.Burst) / float64(rate.Amount) * float64(time.Second)
	for step := range steps {
		pause := h.rng.Float64() * fill / 40
		if h.rng.IntN(100) == 0 {
			pause = h.rng.Float64() * fill
		}
		advance(time.Duration(pause).Truncate(time.Microsecond))
		now, err := h.now()
		if err != nil {
			t.Fatalf("seed %#x, step %d: %v", seed, step, err)
		}
		a := &fleet.Ask{Group: h.group, ID: h.rng.Uint64() | 1, Lane: h.lanes[0], Copies: h.rng.Int64N(3)}
		a.Claims = append(a.Claims, f.claim(now, 1+h.rng.Int64N(max(1, rate.Burst/20))))
		b := *a
		p := &pair{a, &b}
		for range h.rng.IntN(4) {
			h.settlement(p, now)
			for i := range p {
				last := &p[i].Settle[len(p[i].Settle)-1]
				last.Owe, last.Pause = 0, 0
			}
		}
		if err := h.both(p, nil); err != nil {
			t.Fatalf("seed %#x, step %d, %+v: %v", seed, step, rate, err)
		}
	}
}
