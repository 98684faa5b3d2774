package fleet

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// cutLease returns a lease of a process that has been cut off for long with half of all parts.
func cutLease(t *testing.T, l limit.Limit) (*limit.Registry, *lease) {
	t.Helper()
	f := New(NewMemory(nil), Options{Without: Without{Share: 0.5}})
	g := f.Group("up")
	r, err := limit.NewShared(0, l, g)
	if err != nil {
		t.Fatal(err)
	}
	p := leaseOf(r.Get(0, ""))
	s := &g.standing
	s.met, s.part, s.recv, s.sent, s.silence, s.rules.life = true, Whole/2, sec, sec, sec, time.Hour
	s.epoch++
	s.kept.note(sec, Whole/2)
	g.lone.Store(int64(s.from()))
	return r, p
}

func setAt(t *testing.T, r *limit.Registry, at time.Duration, l limit.Limit) {
	t.Helper()
	if err := r.Set(at, l); err != nil {
		t.Fatal(err)
	}
}

func drawAll(p *lease, now time.Duration) (n int) {
	for ; n < 1000; n++ {
		if _, _, ok := p.draw(now, 1); !ok {
			break
		}
	}
	return n
}

func TestALookBeforeALongerWindowForgetsNothing(t *testing.T) {
	for _, look := range []string{"none", "look", "keeps", "twice"} {
		l := rollingLimit(200, 10*sec)
		r, p := cutLease(t, l)
		at := 3000 * sec
		first := drawAll(p, at)
		l.Per = 1000 * sec
		setAt(t, r, at+5*sec, l)
		switch look {
		case "look":
			p.Look(at + 11*sec)
		case "keeps":
			p.keepsOwn(at + 11*sec)
		case "twice":
			l.Amount = 201
			setAt(t, r, at+12*sec, l)
		}
		second := drawAll(p, at+12*sec)
		if first+second > 101 {
			t.Errorf("%s: %d and %d", look, first, second)
		}
	}
}

// Units of a quota's share do not become tokens of the bucket that replaces the quota.
func TestAShareOfAQuotaIsNoTokenOfABucket(t *testing.T) {
	l := limit.Limit{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 200}, Every: bucket.Day}
	r, p := cutLease(t, l)
	s := &p.group.standing
	s.part = 0 // the process uses its share
	at := 100 * sec
	turn, _, _ := p.draw(at, 50)
	setAt(t, r, at+sec, limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: sec, Burst: 100}})
	before := drawAll(p, at+sec)
	p.Back(at+sec, turn, 50)
	if n := drawAll(p, at+sec); n > 0 || before > 0 {
		t.Errorf("%d at once of a bucket that begins empty, and %d when the call came back", before, n)
	}
}

// Units of a block that was returned after a change of the window do not leave the store's window later.
func TestABlockThatGoesBackAfterAReloadDoesNotComeAgain(t *testing.T) {
	for _, reload := range []bool{false, true} {
		l := rollingLimit(200, 60*sec)
		r, p := cutLease(t, l)
		s := &p.group.standing
		s.recv, s.sent, s.rules.life = 1000*sec, 1000*sec, 10*time.Hour // last response at 1000 s
		s.kept.note(0, Whole/2)
		at := 1000 * sec
		rule := p.spec().rule
		grain := rule.Ring.Grain
		m := Mark{At: at.Microseconds() / grain, Level: grain}
		p.took(at, at, p.spec(), 40, 40)
		p.put(at, 40, expiry{at: at + sec}, m)
		if reload {
			l.Per = 120 * sec
			setAt(t, r, at+sec/2, l)
		}
		p.expire(at+2*sec, false) // the block is returned to the store, which grants it to other processes
		for now := at + 4*sec; now < at+120*sec; now += sec {
			drawAll(p, now)
		}
		drawAll(p, at+122*sec)
		p.group.own.Lock()
		if p.own.had.sum > 0 {
			t.Errorf("reload %v: %d units that went back to the store are counted as leaving its window", reload, p.own.had.sum)
		}
		p.group.own.Unlock()
	}
}

// A late grant to a process that is cut off adds no units to a limit that has changed its shape.
func TestALateGrantIsNoNewBeginning(t *testing.T) {
	for _, late := range []bool{false, true} {
		l := rate(20, 200, sec)
		r, p := cutLease(t, l)
		at := 100 * sec
		first := drawAll(p, at)
		next := rollingLimit(200, 10*sec)
		setAt(t, r, at+sec, next)
		if late {
			p.took(at+sec/2, at+sec, p.spec(), 1, 1)
		}
		second := drawAll(p, at+sec)
		if second > 0 {
			t.Errorf("late %v: %d of a bucket and then %d of a window", late, first, second)
		}
	}
}

// Units of a calendar window expire with it, and units of a block with that block. Later grants do not change
// that.
func TestWhatWasDrawnEndsWithWhatItIsOf(t *testing.T) {
	l := limit.Limit{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 200}, Every: bucket.Day}
	_, p := cutLease(t, l)
	at := 100 * sec
	p.keepBy(at, 10, expiry{at: at + sec}, Mark{At: 1})
	_, by, ok := p.draw(at, 1)
	p.keepBy(at+sec, 10, expiry{at: at + 100*sec}, Mark{At: 2})
	if !ok || !by.passed(at+sec, p.group.fleet.clock) {
		t.Errorf("drawn %v, to be used before %v; want %v", ok, by.at, at+sec)
	}
	p.put(at, 10, expiry{at: at + 2*sec}, Mark{At: 1})
	if _, by, ok = p.draw(at, 1); !ok || by.at != at+2*sec {
		t.Errorf("drawn of a block %v, to be used before %v; want %v", ok, by.at, at+2*sec)
	}
}
