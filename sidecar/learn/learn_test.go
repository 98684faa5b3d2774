package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A tank is an upstream with a known limit.
type tank struct {
	rate, burst, level float64
	at                 time.Time
}

func (b *tank) take(at time.Time, n float64) bool {
	if b.at.IsZero() {
		b.level = b.burst
	} else {
		b.level = min(b.burst, b.level+b.rate*at.Sub(b.at).Seconds())
	}
	b.at = at
	if b.level < n {
		return false
	}
	b.level -= n
	return true
}

// A window is an upstream that counts by windows of the clock.
type window struct {
	most, used float64
	long       time.Duration
	at         time.Time
}

func (w *window) take(at time.Time, n float64) bool {
	if begun := at.Truncate(w.long); begun != w.at {
		w.at, w.used = begun, 0
	}
	if w.used+n > w.most {
		return false
	}
	w.used += n
	return true
}

// load generates calls whose rate changes every minute. The upstream determines which calls it accepts.
type load struct {
	rand   *rand.Rand
	rates  []float64 // per second, minute by minute
	minute time.Duration
	call   func(r *rand.Rand, at time.Time) Call // with Class set
}

func (l load) play(to func(Call)) {
	at := begin
	for i, rate := range l.rates {
		end := begin.Add(time.Duration(i+1) * l.minute)
		for rate > 0 {
			next := at.Add(time.Duration(l.rand.ExpFloat64() / rate * float64(time.Second)))
			if next.After(end) {
				break
			}
			at = next
			to(l.call(l.rand, at))
		}
		at = end
	}
}

// wave returns a load that rises above a rate and falls below it, n times.
func wave(rate float64, n int) (all []float64) {
	for range n {
		for _, part := range []float64{0.3, 0.7, 1.4, 2, 0.9, 0.2} {
			all = append(all, part*rate)
		}
	}
	return all
}

func classOf(taken bool) outcome.Class {
	if taken {
		return outcome.OK
	}
	return outcome.Throttled
}

func near(got, want, part float64) bool { return math.Abs(got-want) <= part*want }

// simple returns a load on an upstream with one limit. With noise, some calls are throttled at any rate.
func simple(seed uint64, rates []float64, takes func(time.Time, float64) bool, noise float64) load {
	return load{rand.New(rand.NewPCG(seed, 1)), rates, time.Minute, func(r *rand.Rand, at time.Time) Call {
		ok := r.Float64() >= noise && takes(at, 1)
		return Call{At: at, Upstream: "api", Operation: "put", Class: classOf(ok), Took: 80*time.Millisecond + time.Duration(r.IntN(40))*time.Millisecond}
	}}
}

func only(t *testing.T, l *Learner) Finding {
	t.Helper()
	all := l.Findings()
	if len(all) != 1 {
		t.Fatalf("%d findings", len(all))
	}
	return all[0]
}

func TestTheRateAndTheBurstOfAnUpstreamAreFound(t *testing.T) {
	for _, c := range []struct {
		rate, burst, noise float64
		cycles             int
		minute             time.Duration
	}{
		{50, 20, 0, 10, time.Minute}, {50, 20, 0.001, 10, time.Minute}, {3500, 5000, 0, 1, 20 * time.Second}, {5, 5, 0, 40, time.Minute},
		{0.2, 10, 0, 20, time.Hour}, {100, 6000, 0, 5, 5 * time.Minute}, {20, 200, 0.002, 20, time.Minute},
	} {
		b := &tank{rate: c.rate, burst: c.burst}
		l := New()
		p := simple(7, wave(c.rate, c.cycles), b.take, c.noise)
		p.minute = c.minute
		p.play(l.Call)
		f := only(t, l)
		if len(f.Limits) != 1 {
			t.Errorf("%+v: %s", c, strings.Join(f.Says, "\n"))
			continue
		}
		got := f.Limits[0].Rate
		t.Logf("%+v: %v", c, got)
		if !near(got.PerSecond(), c.rate, 0.03) || got.Full() > int64(c.burst*1.1)+2 || float64(got.Full()) < 0.7*c.burst || f.Limits[0].Unit != limit.Requests {
			t.Errorf("%+v: %v\n%s", c, got, strings.Join(f.Says, "\n"))
		}
	}
}

// Throttles with another reason, during many hours with few calls, do not hide the rate of the busy minutes.
func TestThrottlesOfAnotherReasonAreLeftOut(t *testing.T) {
	var rates []float64
	for range 900 {
		rates = append(rates, 2)
	}
	b := &tank{rate: 50, burst: 20}
	l := New()
	simple(9, append(rates, 100, 100, 100, 1, 100), b.take, 0.02).play(l.Call)
	f := only(t, l)
	if len(f.Limits) != 1 || !near(f.Limits[0].Rate.PerSecond(), 50, 0.05) {
		t.Errorf("%v\n%s", f.Limits, strings.Join(f.Says, "\n"))
	}
}

func TestWindowsOfTheClockAreHeldByTheirRate(t *testing.T) {
	w := &window{most: 600, long: time.Minute}
	l := New()
	p := simple(3, wave(10, 10), w.take, 0)
	p.minute = 5 * time.Minute
	p.play(l.Call)
	f := only(t, l)
	if len(f.Limits) != 1 || !near(f.Limits[0].Rate.PerSecond(), 10, 0.05) || f.Limits[0].Rate.Full() > 600 {
		t.Errorf("%v\n%s", f.Limits, strings.Join(f.Says, "\n"))
	}
}

func TestNothingIsProposedWhereNothingIsKnown(t *testing.T) {
	never := func(time.Time, float64) bool { return true }
	day := []float64{5, 10, 20, 40, 60, 40, 20, 10}
	for range 5 {
		day = append(day, day[:8]...)
	}
	even := []float64{50, 50, 50, 50, 50, 50, 50, 50, 50, 50}
	few := &tank{rate: 10, burst: 10}
	short := simple(4, []float64{5, 12}, few.take, 0)
	short.minute = 10 * time.Second
	for name, c := range map[string]struct {
		load load
		want string
	}{
		"no throttle":      {simple(1, day, never, 0), "nothing was throttled"},
		"noise":            {simple(2, day, never, 0.002), "no limit is proposed"},
		"noise, even load": {simple(3, even, never, 0.001), "no limit is proposed"},
		"few":              {short, "not enough data"},
	} {
		l := New()
		c.load.play(l.Call)
		f := only(t, l)
		if all := strings.Join(f.Says, "\n"); len(f.Limits) > 0 || !strings.Contains(all, c.want) {
			t.Errorf("%s: %v\n%s", name, f.Limits, all)
		}
	}
}

// A clock that stops, jumps ahead, or is set back does not cause a wrong rate.
func TestClocksThatJump(t *testing.T) {
	b := &tank{rate: 50, burst: 20}
	l := New()
	n, shift := 0, time.Duration(0)
	simple(7, wave(50, 10), b.take, 0).play(func(c Call) {
		switch n++; n {
		case 5000:
			shift += 3 * time.Hour
		case 9000, 15000:
			shift -= time.Hour
			l.Break()
		}
		c.At = c.At.Add(shift)
		l.Call(c)
	})
	f := only(t, l)
	if len(f.Limits) != 1 || !near(f.Limits[0].Rate.PerSecond(), 50, 0.03) {
		t.Errorf("%v\n%s", f.Limits, strings.Join(f.Says, "\n"))
	}
}

func TestTokensAreToldFromRequests(t *testing.T) {
	b := &tank{rate: 1500, burst: 30000}
	l := New()
	load{rand.New(rand.NewPCG(5, 1)), wave(3, 80), time.Minute, func(r *rand.Rand, at time.Time) Call {
		tokens := 50 + r.Int64N(900)
		if at.Unix()/600%2 == 0 {
			tokens *= 3
		}
		if !b.take(at, float64(tokens)) {
			return Call{At: at, Upstream: "llm", Class: outcome.Throttled}
		}
		return Call{At: at, Upstream: "llm", Class: outcome.OK, Tokens: tokens, Took: time.Second}
	}}.play(l.Call)
	f := only(t, l)
	if len(f.Limits) != 1 || f.Limits[0].Unit != "tokens" || !near(f.Limits[0].Rate.PerSecond(), 1500, 0.05) || f.Limits[0].Rate.Per != time.Minute {
		t.Errorf("%v\n%s", f.Limits, strings.Join(f.Says, "\n"))
	}
}

func TestOperationsAndKeysAreToldApart(t *testing.T) {
	put := &tank{rate: 20, burst: 20}
	l := New()
	load{rand.New(rand.NewPCG(5, 1)), wave(40, 20), time.Minute, func(r *rand.Rand, at time.Time) Call {
		if r.IntN(2) == 0 {
			return Call{At: at, Upstream: "s3", Operation: "get", Class: outcome.OK}
		}
		return Call{At: at, Upstream: "s3", Operation: "put", Class: classOf(put.take(at, 1))}
	}}.play(l.Call)
	f := only(t, l)
	if len(f.Limits) != 1 || f.Limits[0].Operation != "put" || !near(f.Limits[0].Rate.PerSecond(), 20, 0.05) {
		t.Errorf("operations: %v\n%s", f.Limits, strings.Join(f.Says, "\n"))
	}

	tenants := map[string]*tank{}
	for i := range 6 {
		tenants[fmt.Sprint("t", i)] = &tank{rate: 10, burst: 10}
	}
	tenants["t4"].rate, tenants["t5"].rate = 40, 40
	l = New()
	load{rand.New(rand.NewPCG(6, 1)), wave(100, 30), time.Minute, func(r *rand.Rand, at time.Time) Call {
		who := fmt.Sprint("t", r.IntN(6))
		if at.Minute()/3%2 == 0 {
			who = []string{"t0", "t4", "t5"}[r.IntN(3)]
		}
		return Call{At: at, Upstream: "api", Keys: "route=api,tenant=" + who, Class: classOf(tenants[who].take(at, 1))}
	}}.play(l.Call)
	f = only(t, l)
	all := strings.Join(f.Says, "\n")
	if len(f.Limits) != 1 || f.Limits[0].Scope != "tenant" || !near(f.Limits[0].Rate.PerSecond(), 10, 0.05) ||
		!strings.Contains(all, "4 throttled values of tenant have a limit of about 10") || !strings.Contains(all, "2 throttled values of tenant have a limit of about 4") {
		t.Errorf("keys: %v\n%s", f.Limits, all)
	}
}
