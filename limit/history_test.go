package limit

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A holder is a caller that was granted n units, minus the returned ones, or that waits for them.
type holder struct {
	turn     Turn
	n        int64
	told     time.Duration // when a sleeping caller asks again
	at       time.Duration // when its units were granted
	returned bool
}

// A history records operations on a limiter and the real usage, which is checked at the end. A unit that was returned
// was never used. Waiting calls form a queue: the first one asks, waits as long as predicted, and takes.
type history struct {
	rng     *rand.Rand
	m       *Limiter
	l       Limit
	now     time.Duration
	paused  time.Duration
	place   *big.Rat // one position of the line in units
	sleeps  bool     // the first waiting call asks again at the predicted instant, whatever happens meanwhile
	waiting []*holder
	went    []*holder
	tape    []func(v *level) error
}

func newHistory(rng *rand.Rand, l Limit) (*history, error) {
	h := &history{rng: rng, l: l, now: time.Duration(rng.Int64N(1 << 59))}
	m, err := New(h.now, l)
	if err != nil {
		return nil, err
	}
	h.m, h.place = m, big.NewRat(1, m.bucket.line.Load().Unit())
	start, r := h.now, l.Rate
	h.tape = append(h.tape, func(v *level) error {
		*v = *newLevel(start, r)
		v.slack = h.place
		return nil
	})
	return h, nil
}

func (h *history) judge() error {
	var v level
	for _, step := range h.tape {
		if err := step(&v); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) use(u *holder) error {
	now := h.now
	if now < h.paused {
		return fmt.Errorf("went at %v, in a pause until %v", now, h.paused)
	}
	u.at = now
	h.went = append(h.went, u)
	h.tape = append(h.tape, func(v *level) error { return v.use(now, u.n) })
	return nil
}

// advance lets waiting calls proceed in order, each at the instant that Ask predicts and not before.
func (h *history) advance(to time.Duration) error {
	for len(h.waiting) > 0 {
		u := h.waiting[0]
		wait := h.m.Ask(h.now, u.n)
		if wait == bucket.Never { // the burst was reduced
			h.waiting = h.waiting[1:]
			continue
		}
		if h.sleeps {
			wait = max(0, u.told-h.now)
		}
		if wait > to-h.now {
			break
		}
		if wait > 0 && !h.sleeps && h.m.bucket.returned() == nil {
			if _, _, ok := h.m.Take(h.now+wait-1, u.n); ok {
				return errors.New("a turn has come before Ask said")
			}
		}
		h.now += wait
		t, again, ok := h.m.Take(h.now, u.n)
		if !ok && !h.sleeps {
			return fmt.Errorf("a turn has not come when Ask said, but will in %v", again)
		}
		if !ok {
			u.told = h.now + again
			continue
		}
		h.waiting = h.waiting[1:]
		u.turn = t
		if err := h.use(u); err != nil {
			return err
		}
	}
	h.now = to
	return nil
}

func (h *history) step() error {
	full := h.m.Look(h.now).Full
	gap := upTo(h.rng, 1+int64(h.l.Per)/max(1, h.l.Amount)*min(full, 1<<20)*2)
	if err := h.advance(h.now + time.Duration(h.rng.IntN(2))*time.Duration(gap)); err != nil {
		return err
	}
	n := 1 + h.rng.Int64N(min(full, upTo(h.rng, 1<<20)))
	var err error
	switch h.rng.IntN(17) {
	case 0, 1, 2, 3, 4:
		err = h.try(n)
	case 5, 6, 7, 8:
		err = h.take(n)
	case 9, 10, 11, 12:
		h.back()
	case 13:
		h.pause(time.Duration(upTo(h.rng, int64(gap))))
	case 14:
		h.pace()
	case 15:
		err = h.set()
	case 16:
		h.resume()
	}
	if v := h.m.Look(h.now); v.Left < 0 || v.Left > v.Full {
		return fmt.Errorf("%d left of %d", v.Left, v.Full)
	}
	return errors.Join(err, h.returnedIsBooked())
}

// returnedIsBooked checks that no returned position is one that the line will grant again.
func (h *history) returnedIsBooked() error {
	if s := h.m.bucket.returned(); s != nil && (*s)[len(*s)-1].Place > h.m.bucket.booked.Load() {
		return fmt.Errorf("booked is %d, and there came back %v", h.m.bucket.booked.Load(), *s)
	}
	return nil
}

func (h *history) try(n int64) error {
	before := h.m.Look(h.now)
	ok := h.m.Try(h.now, n)
	if ok != (before.Left >= n && before.Paused == 0) {
		return fmt.Errorf("try %d: %v, although %+v", n, ok, before)
	}
	if !ok {
		if after := h.m.Look(h.now); after != before {
			return fmt.Errorf("a refusal of %d changed %+v to %+v", n, before, after)
		}
		return nil
	}
	return h.use(&holder{n: n, returned: true})
}

// take takes units, or joins the queue.
func (h *history) take(n int64) error {
	before, ask := h.m.Look(h.now), h.m.Ask(h.now, n)
	t, wait, ok := h.m.Take(h.now, n)
	if wait != ask || ok != (wait == 0) {
		return fmt.Errorf("take %d: wait %v, %v; Ask said %v", n, wait, ok, ask)
	}
	u := &holder{turn: t, n: n, told: h.now + wait}
	if ok {
		return h.use(u)
	}
	if after := h.m.Look(h.now); after != before {
		return fmt.Errorf("a refusal of %d changed %+v to %+v", n, before, after)
	}
	h.waiting = append(h.waiting, u)
	return nil
}

// back returns all or a part of used units. A waiting call holds nothing and just leaves.
func (h *history) back() {
	i := h.rng.IntN(len(h.waiting) + len(h.went) + 1)
	if i < len(h.waiting) {
		h.waiting = append(h.waiting[:i:i], h.waiting[i+1:]...)
		return
	}
	if i -= len(h.waiting); i == len(h.went) || h.went[i].returned {
		return
	}
	u := h.went[i]
	if h.m.bucket.instead() != nil && u.at <= h.now-h.l.Per {
		return // left the window long ago
	}
	n := u.n
	if h.rng.IntN(3) == 0 {
		n = h.rng.Int64N(u.n + 1)
	}
	h.m.Back(h.now, u.turn, n)
	u.returned = true
	u.n -= n
}

func (h *history) pause(d time.Duration) {
	now, until := h.now, h.now+d
	h.m.Pause(now, until)
	h.paused = max(h.paused, until)
	h.tape = append(h.tape, func(v *level) error { v.pause(now, until); return nil })
}

func (h *history) resume() {
	now := h.now
	h.m.Resume(now)
	h.paused = min(h.paused, now)
	h.tape = append(h.tape, func(v *level) error { v.resume(now); return nil })
}

func (h *history) pace() {
	if h.m.bucket.instead() != nil {
		return
	}
	now, pace := h.now, h.l.PerSecond()/float64(int64(1)<<h.rng.IntN(6))
	h.m.bucket.pace(now, pace)
	h.tape = append(h.tape, func(v *level) error { v.pace(now, pace); return nil })
}

func (h *history) set() error {
	l := h.l
	l.Burst = 1 + h.rng.Int64N(2*h.l.Full())
	l.Amount = max(1, h.l.Amount*(1+h.rng.Int64N(8))/(1+h.rng.Int64N(8)))
	if h.m.bucket.instead() != nil || l.Validate() != nil {
		return nil
	}
	before, holes := h.m.Look(h.now), h.m.bucket.returned() != nil || h.m.bucket.blocks() != nil
	if !h.m.setLimit(h.now, l) {
		if after := h.m.Look(h.now); after != before {
			return fmt.Errorf("a change that was declined changed %+v to %+v", before, after)
		}
		return nil
	}
	after := h.m.Look(h.now)
	want := min(before.Left, l.Full())
	if holes && l.Full() < before.Full { // a smaller burst may pass returned positions, or those in blocks
		want = min(want, after.Left)
	}
	if after.Left != want || after.Full != l.Full() {
		return fmt.Errorf("the change from %+v to burst %d left %+v, want %d left", before, l.Full(), after, want)
	}
	h.l = l
	now := h.now
	h.tape = append(h.tape, func(v *level) error { v.set(now, l.Rate); return nil })
	return nil
}

// judgeRolling checks every half-open window that ends with a grant.
func (h *history) judgeRolling(l Limit) error {
	for i, last := range h.went {
		var sum int64
		for _, u := range h.went[:i+1] {
			if u.at > last.at-l.Per {
				sum += u.n
			}
		}
		if sum > l.Amount {
			return fmt.Errorf("%v: %d units in the period up to %v", l, sum, last.at)
		}
	}
	return nil
}

// settle lets all waiting calls proceed, and then waits until the limiter is full.
func (h *history) settle() error {
	for len(h.waiting) > 0 {
		wait := max(h.m.Ask(h.now, h.waiting[0].n), h.waiting[0].told-h.now)
		if wait > 1<<58 {
			return nil
		}
		if err := h.advance(h.now + wait); err != nil {
			return err
		}
	}
	reset := h.m.Look(h.now).Reset
	if reset > 1<<60 {
		return nil
	}
	h.now += reset
	if v := h.m.Look(h.now); v.Left != v.Full || v.Reset != 0 {
		return fmt.Errorf("after its reset it looks like %+v", v)
	}
	return nil
}

func runHistory(rng *rand.Rand, l Limit, steps int) (*history, error) {
	h, err := newHistory(rng, l)
	if err != nil {
		return nil, err
	}
	h.sleeps = rng.IntN(2) == 0
	for step := range steps {
		if err := h.step(); err != nil {
			return nil, fmt.Errorf("%v, step %d: %w", l, step, err)
		}
	}
	if err := h.settle(); err != nil {
		return nil, fmt.Errorf("%v: %w", l, err)
	}
	return h, nil
}

// No window grants more than the limit and one position of the line that an instant may have begun, in any sequence
// of grants, waits, returns, pauses, paces and changes.
func TestNoHistoryGoesOverTheLimit(t *testing.T) {
	cases(t, campaign.Histories(2000, 25_000), anyHistory)
}

func anyHistory(rng *rand.Rand) error {
	l := limitOf(anyRate(rng))
	h, err := runHistory(rng, l, 30+rng.IntN(200))
	if err != nil {
		return err
	}
	if err := h.judge(); err != nil {
		return fmt.Errorf("%v: %w", l, err)
	}
	return nil
}

// These histories exceeded the limit in earlier versions.
func TestNoHistoryGoesOverTheLimitAgain(t *testing.T) {
	for _, seed := range []uint64{
		0x5f6049ee9f22a602, // a pace that was rounded up, for years
	} {
		if err := anyHistory(rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Errorf("seed %#x: %v", seed, err)
		}
	}
}

func TestNoHistoryGoesOverARollingLimit(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		l := rollingLimit(1+rng.Int64N(20), time.Duration(1+upTo(rng, 1<<40)))
		h, err := runHistory(rng, l, 30+rng.IntN(100))
		if err != nil {
			return err
		}
		return h.judgeRolling(l)
	})
}
