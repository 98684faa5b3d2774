package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// daily returns a limit with an amount per day.
func daily(name string, amount int64, zone string) limit.Limit {
	return limit.Limit{Name: name, Shape: limit.Calendar, Rate: bucket.Rate{Amount: amount}, Every: bucket.Day, Zone: zone}
}

const day = 24 * time.Hour

// A wall is the system's clock with another date.
type wall struct {
	clock.Clock
	begin time.Time // at the instant from
	from  time.Duration
}

func newWall(begin string) *wall {
	at, _ := time.Parse(time.RFC3339, begin)
	return &wall{clock.System, at, clock.System.Now()}
}

func (w *wall) Wall(at time.Duration) time.Time { return w.begin.Add(at - w.from) }

func TestAQuotaSaysWhenItResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("rpm", 5, time.Minute, 5), scoped(daily("rpd", 2, "America/Los_Angeles"), "tenant")),
			weir.Options{Clock: newWall("2026-03-08T01:30:00-08:00")})
		call := weir.Call{Keys: map[string]string{"tenant": "acme"}}
		for range 2 {
			p, err := u.Acquire(background, call)
			if err != nil {
				t.Fatal(err)
			}
			p.Report(ok)
		}
		_, err := u.Acquire(background, call)
		r := refusal(t, err)
		// The clock skips from 2 to 3 in the morning: the day has 23 hours.
		if r.Reason != weir.QuotaExhausted || r.Limit != "rpd" || r.Key != "acme" || r.RetryAfter != 21*time.Hour+30*time.Minute {
			t.Errorf("got %+v", r)
		}
		if got := r.ResetAt().Format(time.RFC3339); got != "2026-03-09T00:00:00-07:00" {
			t.Errorf("resets at %s", got)
		}
		if want := `api default: quota_exhausted by limit rpd (2 a day (America/Los_Angeles)) for tenant "acme": ` +
			`resets at 2026-03-09T00:00:00-07:00, retry after 21h30m0s`; r.Error() != want {
			t.Errorf("got  %s\nwant %s", r, want)
		}
		if len(r.Levels) != 2 {
			t.Fatalf("levels %+v", r.Levels)
		}
		rpm, rpd := r.Levels[0], r.Levels[1]
		if rpm.Rule.Name != "rpm" || rpm.Key != "" || rpm.Cost != 1 || rpm.Level.Left != 3 || !rpm.Level.ResetAt.IsZero() {
			t.Errorf("rpm: %+v", rpm)
		}
		if rpd.Rule.Name != "rpd" || rpd.Key != "acme" || rpd.Level != r.Level || rpd.Level.Left != 0 {
			t.Errorf("rpd: %+v", rpd)
		}
		pass(r.RetryAfter - 1)
		if _, d := try(u, call); d.Allowed || d.RetryAfter != 1 {
			t.Errorf("before midnight: %+v", d)
		}
		pass(1)
		if _, d := try(u, call); !d.Allowed {
			t.Errorf("at midnight: %+v", d)
		}
	})
}

// Calls may wait for a calendar limit per minute.
func TestWindowsByTheMinuteAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byMinute := daily("rpm", 2, "")
		byMinute.Every = bucket.Minute
		p := steady(byMinute)
		p.MaxWait = 2 * time.Minute
		w := newWall("2026-01-01T00:00:45Z")
		u := open(t, p, weir.Options{Clock: w})
		for _, want := range []time.Duration{0, 0, 15 * sec, 15 * sec, 75 * sec} {
			p, err := u.Acquire(background, weir.Call{})
			if err != nil || since(w.from) != want {
				t.Fatalf("after %v: %v, want %v", since(w.from), err, want)
			}
			p.Report(ok)
		}
		ctx, cancel := context.WithTimeout(background, sec)
		defer cancel()
		if _, err := u.Acquire(ctx, weir.Call{}); err != nil {
			t.Errorf("one more is left: %v", err)
		}
		_, err := u.Acquire(ctx, weir.Call{})
		if r := refusal(t, err); r.Reason != weir.RateLimited || r.RetryAfter != 60*sec || r.ResetAt().IsZero() {
			t.Errorf("got %+v", r)
		}
	})
}

func TestReasonsOfAQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(daily("rpd", 3, "")), weir.Options{Clock: newWall("2026-01-01T12:00:00Z")})
		p, d := try(u, weir.Call{})
		if !d.Allowed {
			t.Fatal(d)
		}
		p.Report(hinted(time.Minute).O)
		if _, d := try(u, weir.Call{}); d.Reason != weir.Paused || d.RetryAfter != time.Minute {
			t.Errorf("paused: %+v", d)
		}
		if _, err := u.Acquire(background, weir.Call{Cost: map[string]int64{limit.Requests: 4}}); !errors.Is(err, weir.ErrTooMuch) {
			t.Errorf("a cost above the amount: %v", err)
		}
		pass(time.Minute)
		for range 2 {
			try(u, weir.Call{})
		}
		if _, d := try(u, weir.Call{}); d.Reason != weir.QuotaExhausted || d.RetryAfter != 12*time.Hour-time.Minute {
			t.Errorf("used up: %+v", d)
		}
	})
}

// A call that one limit refuses consumes no units of the others. Its unused units return to the day from which they
// were taken.
func TestQuotasAreSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := daily("tpd", 100, "")
		tokens.Unit = "tokens"
		u := open(t, steady(daily("rpd", 2, ""), tokens), weir.Options{Clock: newWall("2026-01-01T23:59:00Z")})
		cost := func(n int64) weir.Call { return weir.Call{Cost: map[string]int64{"tokens": n}} }
		early, _ := try(u, cost(80))
		if _, d := try(u, cost(30)); d.Allowed || left(t, u, "rpd", "") != 1 {
			t.Errorf("%+v, and %d requests left", d, left(t, u, "rpd", ""))
		}
		late, _ := try(u, cost(20))
		done := ok
		done.Usage = map[string]int64{"tokens": 30}
		early.Report(done)
		if n := left(t, u, "tpd", ""); n != 50 {
			t.Errorf("%d tokens left, want 50", n)
		}
		pass(time.Minute)
		done.Usage = map[string]int64{"tokens": 5}
		late.Report(done)
		if n := left(t, u, "tpd", ""); n != 100 {
			t.Errorf("%d tokens left the next day, want 100", n)
		}
	})
}

// A changed amount keeps the usage. A changed calendar starts without usage.
func TestAQuotaThatIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(daily("rpd", 3, "")), weir.Options{Clock: newWall("2026-01-01T12:00:00Z")})
		try(u, weir.Call{})
		for _, c := range []struct {
			policy weir.Policy
			left   int64
		}{
			{steady(daily("rpd", 10, "")), 9},
			{steady(daily("rpd", 10, "Asia/Tokyo")), 0},
			{steady(daily("rpd", 20, "Asia/Tokyo")), 0},
		} {
			if err := u.Set(c.policy); err != nil || left(t, u, "rpd", "") != c.left {
				t.Errorf("%v: %d left, want %d, %v", c.policy.Limits, left(t, u, "rpd", ""), c.left, err)
			}
		}
		pass(3 * time.Hour) // midnight in Tokyo
		if n := left(t, u, "rpd", ""); n != 20 {
			t.Errorf("%d left, want 20", n)
		}
	})
}

// The system's clock has a wall time in a bubble too.
func TestQuotasByTheSystemsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(daily("rpd", 1, "")), weir.Options{})
		try(u, weir.Call{})
		begin := time.Now()
		_, d := try(u, weir.Call{})
		want := begin.UTC().Truncate(day).Add(day).Sub(begin)
		if d.Allowed || (d.RetryAfter-want).Abs() > time.Millisecond {
			t.Errorf("got %+v, want %v", d, want)
		}
		time.Sleep(d.RetryAfter)
		if _, d := try(u, weir.Call{}); !d.Allowed {
			t.Errorf("the next day: %+v", d)
		}
	})
}
