package limit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A teller is an upstream that reports in each response the remaining units and the reset, but not the window of its
// limit.
type teller struct {
	limit  int64
	per    time.Duration
	window bool // it counts in windows of this length; otherwise units come back one by one
	whole  bool // resets are rounded up to seconds

	from time.Duration // the beginning of the present window
	used float64
	at   time.Duration

	granted, refused int64
}

// call makes a call at this instant.
func (u *teller) call(now time.Duration) (said outcome.Level, ok bool) {
	if u.window && now >= u.from+u.per {
		u.from += (now - u.from) / u.per * u.per
		u.used = 0
	}
	if !u.window {
		u.used = max(0, u.used-float64(now-u.at)/float64(u.per)*float64(u.limit))
		u.at = now
	}
	if ok = u.used+1 <= float64(u.limit); ok {
		u.used++
		u.granted++
	} else {
		u.refused++
	}
	reset := u.from + u.per - now
	if !u.window {
		reset = time.Duration(u.used / float64(u.limit) * float64(u.per))
	}
	if u.whole {
		reset = (reset + time.Second - 1).Truncate(time.Second)
	}
	return outcome.Level{Name: "requests", Limit: u.limit, Remaining: int64(float64(u.limit) - u.used), Reset: reset}, ok
}

// An echo is a response in transit.
type echo struct {
	p        Charges
	sent, at time.Duration
	said     outcome.Level
	ok       bool
}

// drive sends u everything that the limiter allows for a time. latency is the time until a response arrives.
func drive(t testing.TB, u *teller, latency, long time.Duration) {
	t.Helper()
	r, err := NewRegistry(0, Limit{Name: "rpm", Advertised: "requests", Scope: "pool", Rate: bucket.Rate{Amount: u.limit, Per: time.Minute, Burst: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var flying []*echo
	for now := time.Duration(0); now < long; now += 5 * time.Millisecond {
		for len(flying) > 0 && flying[0].at <= now {
			e := flying[0]
			flying = flying[1:]
			e.p.Tell(now, e.sent, saying(e.ok, e.said), nil)
		}
		for {
			e := &echo{sent: now, at: now + latency}
			e.p.Add(Charge{Registry: r, Key: "k", Cost: 1})
			if v := e.p.Take(now); !v.OK {
				break
			}
			e.p.Sent()
			e.said, e.ok = u.call(now + latency/2)
			flying = append(flying, e)
		}
	}
}

// Remaining units and the reset override a rate that they contradict: an upstream with three units that are back in a
// tenth of a second grants more than three a minute.
func TestWhatIsLeftAndWhenWinOverTheRate(t *testing.T) {
	for _, latency := range []time.Duration{5 * time.Millisecond, 100 * time.Millisecond} {
		for _, window := range []bool{false, true} {
			u := &teller{limit: 3, per: 100 * time.Millisecond, window: window}
			drive(t, u, latency, time.Minute)
			t.Logf("latency %v, window %v: %d went, %d refused", latency, window, u.granted, u.refused)
			if u.granted < 200 || u.refused > 0 {
				t.Errorf("latency %v, window %v: %d went, want 200 at least, and %d were refused", latency, window, u.granted, u.refused)
			}
		}
	}
}

// A limit that is used up and will be back soon grants nothing before that.
func TestNothingGoesBeforeItIsBack(t *testing.T) {
	r, err := NewRegistry(0, Limit{Name: "rpm", Advertised: "requests", Scope: "pool", Rate: bucket.Rate{Amount: 60, Per: time.Minute, Burst: 15}})
	if err != nil {
		t.Fatal(err)
	}
	hearing(t, r, 0, "k", []outcome.Level{{Name: "requests", Limit: 60, Remaining: 0, Reset: 700 * time.Millisecond}})
	for now := time.Duration(0); now < 700*time.Millisecond; now += time.Millisecond {
		m := r.Get(now, "k")
		if at := now + m.Ask(now, 1); at < 700*time.Millisecond || at > 720*time.Millisecond || m.Try(now, 1) {
			t.Fatalf("after %v one may go at %v, want 700 to 720ms", now, at)
		}
	}
	if m := r.Get(720*time.Millisecond, "k"); !m.Try(720*time.Millisecond, 1) {
		t.Error("it is back, and nothing goes")
	}
}

// However an upstream counts, using its remaining units and reset causes hardly any refusals: none if units come back
// one by one, and for windows at most one in a hundred. Of a few units a minute, one call in each window may be
// refused: with 2 a minute, a response may report that nothing remains for 31 s, and the next call goes after 30 s,
// because an upstream that restores its units one by one would grant it.
func TestBelievingTheResetIsSafe(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		u := &teller{
			limit: 1 + random.Int64N(300), per: []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 2 * time.Minute}[random.IntN(5)],
			window: random.IntN(2) == 0, whole: random.IntN(2) == 0,
		}
		u.from = -time.Duration(random.Int64N(int64(u.per)))
		latency := time.Duration(5+random.IntN(500)) * time.Millisecond
		drive(t, u, latency, 3*time.Minute)
		t.Logf("%+v, latency %v", *u, latency)
		most := u.granted/100 + 1
		if u.window && u.per == time.Minute && u.limit <= 10 {
			most = int64(3*time.Minute/u.per) + 1
		}
		if u.per <= time.Minute && u.refused > most {
			t.Errorf("seed %d: latency %v, %+v, want %d refused at most", seed, latency, *u, most)
		}
	}
}
