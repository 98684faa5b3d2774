package limit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

func advertisedLimit() Limit {
	return Limit{Name: "rpm", Advertised: "requests", Scope: "pool", Rate: bucket.Rate{Amount: 500, Per: time.Minute, Burst: 50}}
}

func levels(limit, remaining int64, reset time.Duration) []outcome.Level {
	return []outcome.Level{{Name: "tokens", Limit: 7, Remaining: 7}, {Name: "requests", Limit: limit, Remaining: remaining, Reset: reset}}
}

// saying returns the outcome of a success that reports levels. If counted is set, the upstream counted the call.
func saying(counted bool, said ...outcome.Level) *outcome.Outcome {
	return &outcome.Outcome{Undone: !counted, Hint: outcome.Hint{Limits: said}}
}

// hearing makes a call to which the upstream reports these levels.
func hearing(t testing.TB, r *Registry, now time.Duration, key string, said []outcome.Level) {
	t.Helper()
	var p Charges
	p.Add(Charge{Registry: r, Key: key, Cost: 1})
	if v := p.Take(now); !v.OK {
		t.Fatalf("no call can be made: %+v", v)
	}
	p.Sent()
	p.Tell(now, now, saying(true, said...), nil)
}

func TestWhatIsTold(t *testing.T) {
	const second, hour = time.Second, time.Hour
	for _, c := range []struct {
		name  string
		said  outcome.Level
		day   bool // the guess before
		want  bucket.Rate
		isDay bool
	}{
		{"OpenAI by the minute", outcome.Level{Limit: 500, Remaining: 499, Reset: 120 * time.Millisecond}, false, bucket.Rate{Amount: 500, Per: time.Minute, Burst: 125}, false},
		{"all of it gone", outcome.Level{Limit: 500, Remaining: 0, Reset: time.Minute}, false, bucket.Rate{Amount: 500, Per: time.Minute, Burst: 125}, false},
		{"OpenAI by the day", outcome.Level{Limit: 200, Remaining: 199, Reset: 432 * second}, false, bucket.Rate{Amount: 200, Per: day, Burst: 200}, true},
		{"a large day of which little is gone", outcome.Level{Limit: 10_000, Remaining: 9_990, Reset: 86400 * time.Millisecond}, false, bucket.Rate{Amount: 10_000, Per: day, Burst: 10_000}, true},
		{"too little to tell", outcome.Level{Limit: 10_000, Remaining: 9_999, Reset: 8640 * time.Millisecond}, false, bucket.Rate{Amount: 10_000, Per: time.Minute, Burst: 2500}, false},
		{"too little to tell, and a day before", outcome.Level{Limit: 10_000, Remaining: 9_999, Reset: 8640 * time.Millisecond}, true, bucket.Rate{Amount: 10_000, Per: day, Burst: 10_000}, true},
		{"nothing gone", outcome.Level{Limit: 200, Remaining: 200}, true, bucket.Rate{Amount: 200, Per: day, Burst: 200}, true},
		{"a minute after all", outcome.Level{Limit: 200, Remaining: 100, Reset: 30 * second}, true, bucket.Rate{Amount: 200, Per: time.Minute, Burst: 50}, false},
		{"Anthropic rounds to seconds and thousands", outcome.Level{Limit: 10_000_000, Remaining: 9_999_000, Reset: second}, false, bucket.Rate{Amount: 10_000_000, Per: time.Minute, Burst: 2_500_000}, false},
		{"a minute that begins anew for all", outcome.Level{Limit: 1000, Remaining: 999, Reset: 59 * second}, false, bucket.Rate{Amount: 1000, Per: time.Minute, Burst: 250}, false},
		{"the standard says the window", outcome.Level{Limit: 100, Remaining: 3, Reset: hour, Window: hour}, false, bucket.Rate{Amount: 100, Per: hour, Burst: 25}, false},
		{"and a day", outcome.Level{Limit: 100, Remaining: -1, Window: day}, false, bucket.Rate{Amount: 100, Per: day, Burst: 100}, false},
		{"one", outcome.Level{Limit: 1, Remaining: 0, Reset: 10 * second}, false, bucket.Rate{Amount: 1, Per: time.Minute, Burst: 1}, false},
	} {
		isDay := perDay(&c.said, c.day)
		if got, ok := advertisedRate(&c.said, isDay); !ok || got != c.want || isDay != c.isDay {
			t.Errorf("%s: %+v (day %v, %v), want %+v (day %v)", c.name, got, isDay, ok, c.want, c.isDay)
		}
	}
	for _, said := range []outcome.Level{{}, {Limit: -5}, {Limit: 1e18}, {Limit: mostRolling + 1}, {Limit: 5, Window: -1}, {Limit: mostRolling, Window: 1}, {Limit: 1, Window: 1 << 62}} {
		if got, ok := advertisedRate(&said, false); ok && got.Validate() != nil {
			t.Errorf("%+v gives %+v", said, got)
		} else if ok && (said.Limit <= 0 || said.Limit > mostRolling || said.Window < 0) {
			t.Errorf("%+v is taken for %+v", said, got)
		}
	}
}

func FuzzWhatIsTold(f *testing.F) {
	f.Add(int64(500), int64(499), int64(120e6), int64(0), int64(1), int64(3))
	f.Add(int64(200), int64(0), int64(86400e9), int64(0), int64(-1), int64(0))
	f.Add(int64(1e18), int64(-7), int64(1)<<62, int64(60e9), int64(5), int64(5))
	f.Fuzz(func(t *testing.T, limit, remaining, reset, window, later, cost int64) {
		said := outcome.Level{Name: "requests", Limit: limit, Remaining: remaining, Reset: time.Duration(reset), Window: time.Duration(window)}
		for _, day := range []bool{false, true} {
			got, ok := advertisedRate(&said, perDay(&said, day))
			if ok && (got.Validate() != nil || got.Amount != limit || got.Full() > max(1, limit)) {
				t.Errorf("%+v gives %+v", said, got)
			}
		}
		r, err := NewRegistry(0, advertisedLimit())
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(max(0, later%int64(time.Hour)))
		for range 3 {
			var p Charges
			p.Add(Charge{Registry: r, Key: "k", Cost: max(0, min(cost, r.Most(now, "k")))})
			p.Take(now)
			p.Sent()
			p.Tell(now, time.Duration(later), saying(cost%2 == 0, said), nil)
			at := r.Get(now, "k").Look(now)
			if at.Left < 0 || at.Left > at.Full || at.Full < 1 || !(at.PerSecond > 0) {
				t.Errorf("it looks like %+v", at)
			}
			now += time.Second
		}
	})
}

// A daily amount starts with its own remaining units. The remaining units of the minute before do not count.
func TestADayThatIsToldIsThere(t *testing.T) {
	r, _ := NewRegistry(0, advertisedLimit())
	hearing(t, r, 0, "a", levels(200, 150, 50*432*time.Second))
	at := r.Get(0, "a").Look(0)
	if at.Full != 200 || at.Left != 150 || !near(at.PerSecond, 200/day.Seconds()) {
		t.Errorf("it looks like %+v", at)
	}
	hearing(t, r, 0, "a", levels(200, 149, 51*432*time.Second))
	if got := r.Get(0, "a").Look(0); got.Left != 149 || got.Full != 200 {
		t.Errorf("then it looks like %+v", got)
	}
	if got := r.Get(0, "b").Look(0); got.Full != 50 {
		t.Errorf("another key looks like %+v", got)
	}
}

func TestNonsenseIsNotBelieved(t *testing.T) {
	r, _ := NewRegistry(0, advertisedLimit())
	for _, said := range [][]outcome.Level{nil, levels(0, 0, 0), levels(-1, 5, time.Second), levels(1e18, 1e18, 0), {{Name: "other", Limit: 5}}, {{}}} {
		hearing(t, r, 0, "a", said)
	}
	if at := r.Get(0, "a").Look(0); at.Full != 50 || at.Left != 44 {
		t.Errorf("it looks like %+v", at)
	}
	hearing(t, r, 0, "a", levels(600, 10_000, -time.Hour)) // more units remain than the limit has
	if at := r.Get(0, "a").Look(0); at.Full != 150 || at.Left != 43 {
		t.Errorf("it looks like %+v", at)
	}
}

// A forgotten limiter starts at the configured rate, and learns the advertised rate again from the next response.
// Calls that were in flight when it was forgotten do no harm.
func TestKeysThatWereForgottenAreToldAgain(t *testing.T) {
	l := advertisedLimit()
	l.MaxKeys = 2
	r, _ := NewRegistry(0, l)
	var p Charges
	p.Add(Charge{Registry: r, Key: "a", Cost: 1})
	p.Take(0)
	p.Sent()
	late := time.Hour
	for i := range 100 {
		hearing(t, r, late+time.Duration(i)*time.Hour, fmt.Sprint(i), levels(600, 599, 100*time.Millisecond))
	}
	now := late + 200*time.Hour
	p.Tell(now, 0, saying(true, levels(600, 0, time.Minute)...), nil)
	if at := r.Get(now, "a").Look(now); at.Full != 150 {
		t.Errorf("it looks like %+v", at)
	}
	if n := r.Len(); n > 8 {
		t.Errorf("%d keys are remembered", n)
	}
}

// Keys beyond the maximum share a limiter. A response to one of them does not change it for the others.
func TestWhatOneIsToldIsNotForThoseWhoShare(t *testing.T) {
	l := advertisedLimit()
	l.MaxKeys = 1
	r, _ := NewRegistry(0, l)
	for i := range 10 {
		var p Charges
		p.Add(Charge{Registry: r, Key: fmt.Sprint("first", i), Cost: 1})
		p.Take(0)
	}
	for i := range 10 {
		hearing(t, r, 0, fmt.Sprint(i), levels(8, 7, 7500*time.Millisecond))
	}
	other := r.other.Load()
	if other == nil {
		t.Fatal("nobody shares")
	}
	if at := other.Look(0); at.Full != 50 {
		t.Errorf("those who share have %+v", at)
	}
}

func TestToldWhileThePolicyChanges(t *testing.T) {
	r, _ := NewRegistry(0, advertisedLimit())
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 400 {
				now := time.Duration(i) * time.Millisecond
				var p Charges
				p.Add(Charge{Registry: r, Key: fmt.Sprint("k", i%3), Cost: 1})
				p.Take(now)
				p.Sent()
				p.Tell(now, now, saying(true, levels([]int64{600, 30, 5_000_000, 200}[(i+g)%4], int64(i%30), time.Duration(i%3)*40*time.Second)...), func(Charge, float64) {})
				p.Settle(now, nil)
			}
		})
	}
	wg.Go(func() {
		for i := range 200 {
			l := advertisedLimit()
			if l.Amount += int64(i); i%5 == 0 {
				l.Advertised = ""
			}
			if err := r.Set(time.Duration(i)*2*time.Millisecond, l); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	l := advertisedLimit()
	l.Advertised, l.Amount = "", 77
	if err := r.Set(time.Second, l); err != nil {
		t.Fatal(err)
	}
	var p Charges
	p.Add(Charge{Registry: r, Key: "k0", Cost: 0})
	p.Take(time.Second)
	p.Sent()
	p.Tell(time.Second, time.Second, saying(true, levels(5, 5, 0)...), nil)
	if at := r.Get(time.Second, "k0").Look(time.Second); !near(at.PerSecond, 77./60) {
		t.Errorf("a limit that is told nothing any more has the rate %v", at.PerSecond)
	}
}

// A provider has a bucket of the whole amount that refills continuously, as OpenAI documents it.
type provider struct {
	limit, left float64
	per         time.Duration
	at          time.Duration
	granted     int
	refused     int
}

func (p *provider) ask(now time.Duration, n int64) (said outcome.Level, ok bool) {
	rate := p.limit / p.per.Seconds()
	p.left = min(p.limit, p.left+rate*(now-p.at).Seconds())
	p.at = now
	if ok = p.left >= float64(n); ok {
		p.left -= float64(n)
		p.granted++
	} else {
		p.refused++
	}
	reset := time.Duration((p.limit - p.left) / rate * float64(time.Second))
	return outcome.Level{Name: "requests", Limit: int64(p.limit), Remaining: int64(p.left), Reset: reset.Round(time.Millisecond)}, ok
}

// A sidecar sends as much as its limit allows. Each has its own clock.
type sidecar struct {
	r       *Registry
	deaf    bool // ignores the remaining units
	latency func() time.Duration
	cost    func() int64
	flying  []flight
	next    time.Duration // when it may ask again
}

type flight struct {
	p          *Charges
	sent, back time.Duration
	said       outcome.Level
	ok         bool
}

// run lets several sidecars use one provider for a time.
func run(total time.Duration, up *provider, all ...*sidecar) {
	for now := time.Duration(0); now < total; {
		soon := total
		for _, s := range all {
			s.land(now)
			s.send(now, up)
			if soon = min(soon, s.next); len(s.flying) > 0 {
				soon = min(soon, s.flying[0].back)
			}
		}
		now = max(now+time.Millisecond, soon)
	}
}

func (s *sidecar) send(now time.Duration, up *provider) {
	for now >= s.next {
		p := new(Charges)
		cost := min(s.cost(), s.r.Most(now, "k"))
		p.Add(Charge{Registry: s.r, Key: "k", Cost: cost})
		if v := p.Take(now); !v.OK {
			s.next = now + min(v.Wait, time.Second)
			return
		}
		p.Sent()
		said, ok := up.ask(now, cost)
		f := flight{p, now, now + s.latency(), said, ok}
		at, _ := slices.BinarySearchFunc(s.flying, f, func(a, b flight) int { return cmp.Compare(a.back, b.back) })
		s.flying = slices.Insert(s.flying, at, f)
	}
}

// land applies the responses that have arrived, in order of arrival.
func (s *sidecar) land(now time.Duration) {
	for len(s.flying) > 0 && s.flying[0].back <= now {
		f := s.flying[0]
		s.flying = s.flying[1:]
		if s.deaf {
			f.said.Remaining, f.said.Reset = -1, 0
		}
		f.p.Tell(now, f.sent, saying(f.ok, f.said), nil)
		f.p.Settle(now, nil)
		s.next = now
	}
}

func newSidecar(rng *rand.Rand, limit int64, most time.Duration, cost int64, deaf bool) *sidecar {
	l := advertisedLimit()
	l.Rate = bucket.Rate{Amount: limit, Per: time.Minute, Burst: max(cost, limit/4)}
	r, err := NewRegistry(0, l)
	if err != nil {
		panic(err)
	}
	return &sidecar{
		r: r, deaf: deaf,
		latency: func() time.Duration { return time.Duration(1 + rng.Int64N(int64(most))) },
		cost:    func() int64 { return 1 + rng.Int64N(cost) },
	}
}

// A process that uses a key alone loses nothing by reading the remaining units, however late and in whatever order
// the responses arrive. It never takes its own usage for that of other processes.
func TestWhoIsAloneFindsNoOthers(t *testing.T) {
	for range 12 {
		seed := rand.Uint64()
		var granted [2]int
		limit, most, cost := int64(0), time.Duration(0), int64(0)
		for i, deaf := range []bool{true, false} {
			rng := rand.New(rand.NewPCG(seed, 1))
			limit, most = 20+rng.Int64N(3000), time.Duration(1+rng.Int64N(int64(20*time.Second)))
			cost = 1 + rng.Int64N(max(1, limit/40))
			up := &provider{limit: float64(limit), left: float64(limit), per: time.Minute}
			run(90*time.Second, up, newSidecar(rng, limit, most, cost, deaf))
			if granted[i] = up.granted; up.refused > 0 {
				t.Errorf("seed %d: %d of %d refused", seed, up.refused, up.granted)
			}
		}
		if granted[1] < granted[0]*99/100 {
			t.Errorf("seed %d: limit %d, answers within %v, cost up to %d: %d calls were granted to who listens, %d to who does not", seed, limit, most, cost, granted[1], granted[0])
		}
	}
}

// Two processes that do not know each other share a key. They detect each other by the remaining units.
func TestTwoWhoShareAKeyFindEachOther(t *testing.T) {
	shares := [2]float64{}
	used := [2]float64{}
	const rounds = 6
	for round := range rounds {
		seed := uint64(round + 1)
		for i, deaf := range []bool{true, false} {
			rng := rand.New(rand.NewPCG(seed, 2))
			limit := 100 + rng.Int64N(2000)
			most := time.Duration(1 + rng.Int64N(int64(3*time.Second)))
			up := &provider{limit: float64(limit), left: float64(limit), per: time.Minute}
			run(3*time.Minute, up, newSidecar(rng, limit, most, 1, deaf), newSidecar(rng, limit, most, 1, deaf))
			shares[i] += float64(up.refused) / float64(up.refused+up.granted) / rounds
			used[i] += float64(up.granted) / (4 * float64(limit)) / rounds // three minutes and the first burst
		}
	}
	t.Logf("refused %.1f%% of the calls of those who do not listen and %.1f%% of those who do; used %.0f%% and %.0f%%", 100*shares[0], 100*shares[1], 100*used[0], 100*used[1])
	if shares[1] > shares[0]/3 || shares[0] < 0.2 {
		t.Errorf("refused %.3f and, listening, %.3f; want a third of it at most", shares[0], shares[1])
	}
	if used[1] < 0.9 {
		t.Errorf("%.2f of the limit were used, want 0.9", used[1])
	}
}
