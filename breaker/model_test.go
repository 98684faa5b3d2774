package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// A model is a simple and slow breaker with complete history: lists of instants instead of rings, identities instead of
// generations.
type model struct {
	c         breaker.Config
	phase     string
	held      bool
	until     time.Duration
	fails     []time.Duration
	oks       []time.Duration
	row, good int
	rowSince  time.Duration
	spell     time.Duration // the last open time, except by an operator
	probe     *ticket       // the one in progress
	latest    *ticket       // the latest one
	era       int           // number of closed phases
	half      int           // number of half-open phases
}

type ticket struct {
	era      int
	deadline time.Duration // of a probe
	probe    bool
	half     int            // its half-open phase
	heard    bool           // its outcome counted in full
	p        breaker.Ticket // the ticket of the State
	q        breaker.Ticket // the ticket of the Breaker
}

func newModel(c breaker.Config) *model { return &model{c: c.WithDefaults(), phase: "closed"} }

func (m *model) admit(now time.Duration) *ticket {
	if m.phase == "closed" {
		return &ticket{era: m.era}
	}
	if m.phase == "open" && now < m.until {
		return nil
	}
	if m.phase == "half-open" && m.probe != nil && now < m.probe.deadline {
		return nil
	}
	if m.phase == "open" {
		m.phase, m.good, m.held = "half-open", 0, false
		m.half++
	}
	m.probe = &ticket{probe: true, half: m.half, deadline: now + m.c.ProbeTimeout}
	m.latest = m.probe
	return m.probe
}

func (m *model) report(now time.Duration, k *ticket, o outcome.Outcome) {
	bad := o.Class == outcome.Failed || o.Class == outcome.Unknown || o.Class == outcome.Throttled && m.c.CountThrottled
	switch {
	case m.held:
	case k.probe && m.phase == "half-open" && k.half == m.half && (m.probe != k || now >= k.deadline):
		// lost: only proves that the upstream is up
		if !bad && o.Class != outcome.Canceled && (k != m.latest || !k.heard) {
			if m.probe == k {
				m.probe = nil
			}
			k.heard = true
			if m.good++; m.good == m.c.Successes {
				m.close()
			}
		}
	case k.probe && m.phase == "half-open" && m.probe == k && now < k.deadline:
		m.probe, k.heard = nil, true
		if bad {
			m.open(now, o)
		} else if o.Class != outcome.Canceled {
			if m.good++; m.good == m.c.Successes {
				m.close()
			}
		}
	case !k.probe && m.phase == "closed" && k.era == m.era && o.Class == outcome.OK:
		m.oks = append(m.oks, now)
		if m.row--; m.row < 0 || !m.c.SuccessTakesOne {
			m.row = 0
		}
	case !k.probe && m.phase == "closed" && k.era == m.era && bad:
		m.fails = append(m.fails, now)
		if m.row == 0 {
			m.rowSince = now
		}
		m.row++
		f, n := m.recent(now, m.fails), m.recent(now, m.fails)+m.recent(now, m.oks)
		if m.c.Failures > 0 && f >= m.c.Failures ||
			m.c.Consecutive > 0 && m.row >= m.c.Consecutive && now-m.rowSince >= m.c.ConsecutiveFor ||
			m.c.Share > 0 && n >= m.c.MinCalls && float64(f)/float64(n) >= m.c.Share {
			m.open(now, o)
		}
	}
}

func (m *model) recent(now time.Duration, list []time.Duration) (n int) {
	for _, at := range list {
		if at > now-m.c.Window {
			n++
		}
	}
	return n
}

func (m *model) open(now time.Duration, o outcome.Outcome) {
	if m.spell == 0 {
		m.spell = m.c.FirstOpen
	} else {
		m.spell = min(m.spell+m.spell/2, m.c.Open)
	}
	d := m.spell
	if o.Hint.Said {
		d = min(max(o.Hint.After, time.Second), m.c.MaxOpen)
	}
	m.phase, m.until = "open", now+d
}

func (m *model) close() {
	m.phase, m.held, m.fails, m.oks, m.row, m.era, m.spell = "closed", false, nil, nil, 0, m.era+1, 0
}

func (m *model) force(op int, now time.Duration) {
	switch op {
	case 0:
		m.phase, m.held, m.until, m.spell = "open", true, now+30*time.Second, 0
	case 1:
		m.close()
		m.held = true
	case 2:
		m.close()
	}
}

// Time advances in sixteenths of the window, so that the ring of failures is exact under every rule. One config in eight is the
// default.
func randomConfig(r *rand.Rand) breaker.Config {
	if r.IntN(8) == 0 {
		return breaker.Config{}
	}
	c := breaker.Config{
		Window:         16 * time.Second * time.Duration(1+r.IntN(2)),
		Successes:      1 + r.IntN(3),
		Open:           time.Duration(1+r.IntN(20)) * time.Second,
		MaxOpen:        20 * time.Second,
		ProbeTimeout:   time.Duration(1+r.IntN(9)) * time.Second,
		CountThrottled: r.IntN(2) == 0,
	}
	if r.IntN(2) == 0 {
		c.FirstOpen = min(c.Open, time.Duration(1+r.IntN(3))*time.Second)
	}
	if r.IntN(2) == 0 {
		c.Failures = 1 + r.IntN(9)
	}
	if r.IntN(3) == 0 {
		c.Consecutive = 1 + r.IntN(6)
		c.ConsecutiveFor = time.Duration(r.IntN(3)) * c.Window / 8
		c.SuccessTakesOne = r.IntN(2) == 0
	}
	if r.IntN(3) == 0 {
		c.Share, c.MinCalls = []float64{0.25, 0.5, 1}[r.IntN(3)], 2+r.IntN(9)
	}
	return c
}

func randomOutcome(r *rand.Rand, failing float64) outcome.Outcome {
	o := outcome.Outcome{Class: outcome.OK}
	if r.Float64() < failing {
		o.Class = outcome.Failed
	} else if r.IntN(4) == 0 {
		o.Class = outcome.Classes[r.IntN(len(outcome.Classes))]
	}
	if r.IntN(8) == 0 {
		o.Hint = outcome.Hint{Said: true, After: time.Duration(r.IntN(40)) * time.Second}
	}
	return o
}

func TestAgreesWithTheModel(t *testing.T) {
	opened, closed := 0, 0
	for seed := range uint64(3000) {
		o, c := compareWithModel(t, seed)
		opened, closed = opened+o, closed+c
	}
	if opened < 3000 || closed < 1000 {
		t.Errorf("histories are too tame: %d openings, %d closings", opened, closed)
	}
}

func compareWithModel(t *testing.T, seed uint64) (opened, closed int) {
	r := rand.New(rand.NewPCG(seed, 1))
	c := randomConfig(r)
	m, s, br := newModel(c), breaker.State{}, breaker.New("up", c, nil)
	exact := c.WithDefaults().Share == 0 // the Breaker counts successes in buckets
	failing := []float64{0.1, 0.5, 0.9}[r.IntN(3)]
	var out []*ticket
	now := time.Duration(0)
	for step := range 200 {
		now += time.Duration(max(0, r.IntN(8)-4)) * m.c.Window / 16
		before := s
		switch op := r.IntN(100); {
		case op < 50:
			k := m.admit(now)
			next, p, wait, ok := s.Admit(now, c)
			q, bwait, bok := br.Admit(now)
			if s = next; ok != (k != nil) || exact && (ok != bok || wait != bwait || p != q) {
				t.Fatalf("seed %d, step %d: admit: got %v and %v, want %v\n%+v\n%+v", seed, step, ok, bok, k != nil, c, s)
			}
			if ok {
				k.p, k.q = p, q
				out = append(out, k)
			}
		case op < 97 && len(out) > 0:
			i := r.IntN(len(out))
			k, o := out[i], randomOutcome(r, failing)
			good := int64(m.recent(now, m.oks))
			m.report(now, k, o)
			s = s.Report(now, c, k.p, o, good)
			br.Report(now, k.q, o)
			if r.IntN(10) > 0 { // otherwise it is reported again later
				out = append(out[:i], out[i+1:]...)
			}
		case op >= 99 && r.IntN(4) == 0:
			f := r.IntN(3)
			m.force(f, now)
			s = []breaker.State{s.ForceOpen(now, 30*time.Second), s.ForceClose(now), s.Reset(now)}[f]
			[]func(){func() { br.ForceOpen(now, 30*time.Second) }, func() { br.ForceClose(now) }, func() { br.Reset(now) }}[f]()
		}
		v := br.Look(now)
		if s.Phase.String() != m.phase || exact && (v.Phase != s.Phase || v.Gen != s.Gen) || s.Gen < before.Gen {
			t.Fatalf("seed %d, step %d at %v: got %v and %v, want %v\n%+v\n%+v", seed, step, now, s.Phase, v.Phase, m.phase, c, s)
		}
		if want := m.recent(now, m.fails); exact && s.Phase == breaker.Closed && v.Failed != min(want, 16) && c.Failures > 0 {
			t.Fatalf("seed %d, step %d: got %d failures in the window, want %d", seed, step, v.Failed, want)
		}
		if s.Phase != before.Phase && s.Phase == breaker.Open {
			opened++
		}
		if s.Phase != before.Phase && s.Phase == breaker.Closed {
			closed++
		}
	}
	return opened, closed
}
