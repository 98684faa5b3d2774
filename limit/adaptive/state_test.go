package adaptive

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestThrottleCuts(t *testing.T) {
	for _, c := range []struct {
		name       string
		c          Config
		rate, used float64
		want       float64
	}{
		{"cubic by 0.7", Config{}, 100, 100, 70},
		{"multiply by 0.5", Config{Rule: Multiply}, 100, 100, 50},
		{"add by 0.5", Config{Rule: Add}, 100, 100, 50},
		{"as told", Config{Cut: 0.9}, 100, 100, 90},
		{"from what was used", Config{}, 100, 80, 56},
		{"not from far below the rate", Config{}, 100, 1, 35},
		{"not above the rate", Config{}, 100, 1000, 70},
		{"not below min", Config{Min: 60}, 100, 60, 60},
	} {
		conf := c.c.WithDefaults(100)
		s := conf.Begin(0)
		s.Rate = c.rate
		if got, changed := s.Throttled(conf, sec, 0, c.used, 0); !changed || !near(got.Rate, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got.Rate, changed, c.want)
		}
	}
}

func TestOneCutPerOvershoot(t *testing.T) {
	c := Config{}.WithDefaults(1000)
	first, _ := c.Begin(0).Throttled(c, 10*sec, 9*sec, 1000, 0)
	for _, x := range []struct {
		name      string
		now, sent time.Duration
		trip      time.Duration
		cuts      bool
	}{
		{"at once", 10 * sec, 10 * sec, 0, false},
		{"within the interval", 11*sec - 1, 10500 * ms, 0, false},
		{"after the interval", 11 * sec, 10500 * ms, 0, true},
		{"sent before the cut", 15 * sec, 10*sec - 1, 0, false},
		{"sent with the cut", 15 * sec, 10 * sec, 0, true},
		{"within two round trips", 15 * sec, 11 * sec, 3 * sec, false},
		{"after two round trips", 16 * sec, 11 * sec, 3 * sec, true},
	} {
		if s, cut := first.Throttled(c, x.now, x.sent, 1000, x.trip); cut != x.cuts || cut == (s.Rate == first.Rate) {
			t.Errorf("%s: cut %v to %v, want %v", x.name, cut, s.Rate, x.cuts)
		}
	}
}

func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		name string
		c    Config
		want float64
	}{
		{"multiply", Config{Rule: Multiply}, 105},
		{"multiply as told", Config{Rule: Multiply, Grow: 1.2}, 120},
		{"add", Config{Rule: Add}, 110},
		{"add as told", Config{Rule: Add, Step: 0.1}, 200},
		{"cubic before the first cut", Config{}, 150},
		{"up to max", Config{Rule: Add, Step: 1}, 1000},
	} {
		conf := c.c.WithDefaults(1000)
		s := conf.Begin(0)
		s.Rate = 100
		if got, grew := s.Grown(conf, sec, 100); !grew || !near(got.Rate, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got.Rate, grew, c.want)
		}
	}
}

func TestUnusedRateDoesNotGrow(t *testing.T) {
	for _, rule := range []Rule{Cubic, Multiply, Add} {
		c := Config{Rule: rule}.WithDefaults(1000)
		s := c.Begin(0)
		s.Rate = 100
		if got, grew := s.Grown(c, sec, 49.9); grew || got.Rate != 100 {
			t.Errorf("%v: grew to %v although unused", rule, got.Rate)
		}
		if _, grew := s.Grown(c, sec, 50); !grew {
			t.Errorf("%v: did not grow although half used", rule)
		}
	}
}

// The curve is back at the rate of the last cut after the recovery time. It is nearly flat there, and steep before
// and after.
func TestCubicCurve(t *testing.T) {
	c := Config{Start: 100}.WithDefaults(1000)
	s, _ := c.Begin(0).Throttled(c, 0, 0, 100, 0)
	at := func(d time.Duration) float64 { return s.next(c, d, c.Interval) }
	r := c.Recovery
	for _, x := range []struct {
		d    time.Duration
		want float64
	}{{0, 70}, {r / 2, 96.25}, {r, 100}, {2 * r, 130}} {
		if got := at(x.d); !near(got, x.want) {
			t.Errorf("after %v: %v, want %v", x.d, got, x.want)
		}
	}
	if flat, steep := at(r+r/10)-at(r-r/10), at(r/5)-at(0); flat*50 > steep {
		t.Errorf("grows by %v around the peak and by %v at first", flat, steep)
	}
}

func TestDue(t *testing.T) {
	c := Config{Rule: Multiply}.WithDefaults(100)
	s := c.Begin(5 * sec)
	if s.Due(c, 6*sec-1) || !s.Due(c, 6*sec) {
		t.Error("growth is due too early or late")
	}
	if s, _ = s.Throttled(c, 8*sec, 7*sec, 100, 0); s.Due(c, 9*sec-1) || !s.Due(c, 9*sec) {
		t.Error("growth is due within the interval of a throttle")
	}
	if s, _ = s.Throttled(c, 8500*ms, 7*sec, 100, 0); s.Due(c, 9*sec) {
		t.Error("a throttle that is too old to cut did not put off growth")
	}
}

// randomConfig returns a valid config for a limit between 1 per minute and 10,000 per second.
func randomConfig(r *rand.Rand) (Config, float64) {
	most := math.Exp(r.Float64()*13) / 60
	c := Config{On: true, Rule: Rule(r.IntN(3))}
	maybe := func(f func()) {
		if r.IntN(3) == 0 {
			f()
		}
	}
	maybe(func() { c.Max = most * r.Float64() * 1.5 })
	maybe(func() { c.Start = most * r.Float64() })
	maybe(func() { c.Min = most * r.Float64() })
	maybe(func() { c.Cut = r.Float64() })
	maybe(func() { c.Grow = 1.001 + 8*r.Float64() })
	maybe(func() { c.Step = r.Float64() })
	maybe(func() { c.Recovery = time.Duration(r.Int64N(int64(time.Minute))) })
	maybe(func() { c.Interval = time.Duration(r.Int64N(int64(5 * sec))) })
	maybe(func() { c.CutInterval = time.Duration(r.Int64N(int64(5 * sec))) })
	maybe(func() { c.UsedShare = r.Float64() })
	return c, most
}

// TestPropertyState applies random outcomes to the rule and checks all its promises, step by step.
func TestPropertyState(t *testing.T) {
	cases, cuts, steps := 0, 0, 0
	for seed := uint64(0); cases < 3000; seed++ {
		r := rand.New(rand.NewPCG(seed, 7))
		raw, limit := randomConfig(r)
		if raw.Validate() != nil {
			continue
		}
		cases++
		c := raw.WithDefaults(limit)
		s, now := c.Begin(0), time.Duration(0)
		var lastCut, lastThrottle, lastGrowth time.Duration
		cut, throttled, grown := false, false, false
		for range 200 {
			now += time.Duration(r.ExpFloat64() * float64(300*ms))
			before, used := s.Rate, c.Max*1.2*r.Float64()
			if r.IntN(3) == 0 {
				sent, trip := now-time.Duration(r.Int64N(int64(2*sec))), time.Duration(r.Int64N(int64(sec)))
				next, changed := s.Throttled(c, now, sent, used, trip)
				if changed && cut && (sent < lastCut || now-lastCut < max(c.CutInterval, 2*trip)) {
					t.Fatalf("seed %d: cut at %v for an attempt of %v, the last cut was at %v", seed, now, sent, lastCut)
				}
				if next.Rate > before {
					t.Fatalf("seed %d: a throttle raised the rate from %v to %v", seed, before, next.Rate)
				}
				if changed {
					lastCut, cut = now, true
					cuts++
				}
				s, lastThrottle, throttled = next, now, true
			} else if s.Due(c, now) {
				next, changed := s.Grown(c, now, used)
				if changed != (next.Rate > before) || next.Rate < before {
					t.Fatalf("seed %d: growth from %v to %v, said %v", seed, before, next.Rate, changed)
				}
				if changed && (used < c.UsedShare*before || throttled && now-lastThrottle < c.Interval || grown && now-lastGrowth < c.Interval) {
					t.Fatalf("seed %d: grew at %v at use %v of %v; last throttle %v, growth %v", seed, now, used, before, lastThrottle, lastGrowth)
				}
				if changed {
					lastGrowth, grown = now, true
					steps++
				}
				s = next
			}
			if !(c.Min <= s.Rate && s.Rate <= c.Max) { // false for NaN
				t.Fatalf("seed %d: rate %v is not within [%v, %v]; config %+v", seed, s.Rate, c.Min, c.Max, c)
			}
		}
	}
	if cuts < cases || steps < cases {
		t.Errorf("%d cuts and %d steps of growth in %d cases: too few to prove much", cuts, steps, cases)
	}
}

// TestPropertyController checks a Controller against the same bounds, and against the rate that it reports.
func TestPropertyController(t *testing.T) {
	for seed := uint64(0); seed < 1500; seed++ {
		r := rand.New(rand.NewPCG(seed, 9))
		raw, limit := randomConfig(r)
		if raw.Validate() != nil {
			continue
		}
		c := raw.WithDefaults(limit)
		k, now := NewController(0, raw, limit), time.Duration(0)
		var lastCut time.Duration
		for range 300 {
			now += time.Duration(r.ExpFloat64() * float64(50*ms))
			before, class := k.Rate(), outcome.Classes[r.IntN(len(outcome.Classes))]
			sent := now - time.Duration(r.Int64N(int64(sec)))
			rate, changed := k.Report(now, sent, class, r.Int64N(10))
			if changed != (k.Rate() != before) && !(changed && before == c.Min) || changed && rate != k.Rate() {
				t.Fatalf("seed %d: rate %v, was %v, said %v, %v", seed, k.Rate(), before, rate, changed)
			}
			if changed && class != outcome.OK && class != outcome.Throttled {
				t.Fatalf("seed %d: a %v attempt changed the rate", seed, class)
			}
			if !(c.Min <= k.Rate() && k.Rate() <= c.Max) {
				t.Fatalf("seed %d: rate %v is not within [%v, %v]", seed, k.Rate(), c.Min, c.Max)
			}
			if changed && class == outcome.Throttled {
				if lastCut > 0 && (sent < lastCut || now-lastCut < c.CutInterval) {
					t.Fatalf("seed %d: cut at %v for an attempt of %v, the last cut was at %v", seed, now, sent, lastCut)
				}
				lastCut = now
			}
		}
	}
}
