package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestOneMessageAnIntervalAndOneWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(box)
		n := start(t, Config{Targets: []Target{b}})
		e, began := n.Events(), time.Now()
		for range 40 { // a failure a minute, for 40 minutes
			e.GaveUp(exhausted(put))
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		check(t, b.story(began),
			"0s: exhausted s3 put +0",
			"15m0s: exhausted s3 put +14",
			"30m0s: exhausted s3 put +14",
			"54m0s: resolved exhausted s3 put +9",
		)
		if left := len(n.ledger.entries); left != 0 {
			t.Errorf("%d subjects are remembered after an hour", left)
		}
	})
}

func TestABreakerThatFlapsIsToldOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(box)
		n := start(t, Config{Targets: []Target{b}})
		e, began := n.Events(), time.Now()
		change := func(from, to breaker.Phase) {
			e.Breaker(weir.BreakerEvent{Upstream: "s3", Change: breaker.Change{From: from, To: to}})
		}
		for range 5 {
			change(breaker.Closed, breaker.Open)
			time.Sleep(5 * time.Second)
			change(breaker.Open, breaker.HalfOpen)
			change(breaker.HalfOpen, breaker.Open)
			change(breaker.Open, breaker.HalfOpen)
			change(breaker.HalfOpen, breaker.Closed)
			time.Sleep(5 * time.Second)
		}
		change(breaker.Closed, breaker.Open) // and the breaker stays open
		time.Sleep(time.Hour)
		change(breaker.HalfOpen, breaker.Closed)
		synctest.Wait()
		check(t, b.story(began),
			"0s: breaker_open s3 +0",
			"5s: resolved breaker_open s3 +0",
			"15m0s: breaker_open s3 +4",
			"1h0m50s: resolved breaker_open s3 +0",
		)
		if since := b.messages()[2].Since.Sub(began); since != 50*time.Second {
			t.Errorf("the second message says since %v, want 50s", since)
		}
	})
}

func TestBreakersByKeyAreOneSubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(box)
		n := start(t, Config{Targets: []Target{b}})
		e, began := n.Events(), time.Now()
		change := func(key string, to breaker.Phase) {
			e.Breaker(weir.BreakerEvent{Upstream: "s3", Change: breaker.Change{Key: key, To: to}})
		}
		change("acme", breaker.Open)
		change("hooli", breaker.Open)
		time.Sleep(time.Minute)
		change("acme", breaker.Closed)
		time.Sleep(time.Minute)
		change("hooli", breaker.Closed)
		synctest.Wait()
		check(t, b.story(began), "0s: breaker_open s3 +0", "2m0s: resolved breaker_open s3 +1")
	})
}

// A reload resolves the alert if it removes the open breakers, but not if it keeps them. A breaker that opens later is reported
// again.
func TestABreakerThatAReloadTakesAwayIsOver(t *testing.T) {
	with := func(operations ...string) (p weir.Policy) {
		p.Undeclared = true
		for _, name := range operations {
			p.Operations = append(p.Operations, weir.Operation{Name: name})
		}
		return p
	}
	for name, c := range map[string]struct {
		policy weir.Policy
		opens  []string
		then   func(u, other *weir.Upstream) *weir.Upstream
		over   bool
	}{
		"replaced":                      {with(), []string{""}, func(_, other *weir.Upstream) *weir.Upstream { return other }, true},
		"gone":                          {with(), []string{""}, func(_, _ *weir.Upstream) *weir.Upstream { return nil }, true},
		"nothing changed":               {with(), []string{""}, func(u, _ *weir.Upstream) *weir.Upstream { return u }, false},
		"its operation is gone":         {with("get", "put"), []string{"put"}, func(u, _ *weir.Upstream) *weir.Upstream { _ = u.Set(with("get")); return u }, true},
		"of two operations one is gone": {with("get", "put"), []string{"get", "put"}, func(u, _ *weir.Upstream) *weir.Upstream { _ = u.Set(with("get")); return u }, false},
		"by operation, then one of all": {with("get"), []string{"get"}, func(u, _ *weir.Upstream) *weir.Upstream { _ = u.Set(with()); return u }, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := new(box)
			n := start(t, Config{Targets: []Target{b}})
			began := time.Now()
			make := func() *weir.Upstream {
				u, err := weir.New("s3", c.policy, weir.Options{Events: n.Events()})
				if err != nil {
					t.Fatal(err)
				}
				return u
			}
			u, other := make(), make()
			for _, key := range c.opens {
				u.Breaker(key).ForceOpen(0, 0)
			}
			synctest.Wait()
			now := c.then(u, other)
			time.Sleep(time.Minute)
			n.Recheck("s3", now)
			synctest.Wait()
			more := fmt.Sprint(" +", len(c.opens)-1)
			want := []string{"0s: breaker_open s3 +0"}
			if c.over {
				want = append(want, "1m0s: resolved breaker_open s3"+more)
			}
			check(t, b.story(began), want...)
			if t.Failed() || !c.over || now == nil {
				t.Log(name)
				return
			}
			time.Sleep(time.Hour)
			key := ""
			if now.BreakersBy() != "" {
				key = "get"
			}
			now.Breaker(key).ForceOpen(0, 0)
			synctest.Wait()
			check(t, b.story(began), append(want, "1h1m0s: breaker_open s3 +0")...)
		})
	}
}

func TestEveryKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(box)
		n := start(t, Config{Targets: []Target{b}, Host: "web-1", Runbook: "https://wiki.example.com/weir#{kind}"})
		e := n.Events()
		reset := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		e.Refused(weir.Refused{Upstream: put.Upstream, Operation: put.Operation, Limit: "all", Reason: weir.RateLimited})
		e.Refused(weir.Refused{Upstream: put.Upstream, Operation: put.Operation, Limit: "day", Reason: weir.QuotaExhausted, ResetAt: reset})
		e.GaveUp(exhausted(put))
		e.GaveUp(weir.GaveUp{Subject: put, Why: context.Canceled})
		e.GaveUp(weir.GaveUp{Subject: put, Why: retry.ErrNotRetryable, Attempts: 2, Outcome: outcome.Outcome{Class: outcome.Rejected, Code: "404"}})
		e.GaveUp(weir.GaveUp{Subject: put, Why: retry.ErrQuota, Attempts: 1, Outcome: outcome.Outcome{Class: outcome.Throttled, Code: "sk-secret0123456789"}})
		e.Violated(weir.Violation{Subject: put, InFlight: 7, Levels: []weir.LimitLevel{{Rule: limit.Limit{Name: "all"}}, {Rule: limit.Limit{Name: "day"}}}})
		e.Breaker(weir.BreakerEvent{Upstream: "s3", Change: breaker.Change{To: breaker.Open}})
		n.Fleet().Fallback(fleet.FallbackEvent{Away: true, Err: errors.New("redis://:hunter2@store is away")})
		n.Fleet().Fallback(fleet.FallbackEvent{For: 90 * time.Second, Spent: 12})
		synctest.Wait()
		want := []string{
			"weir: s3 put, limit day: a quota is used up|it resets at 2026-12-01T00:00:00Z",
			"weir: s3 put: calls are given up|reason attempts after 3 attempts; last attempt: throttled SlowDown",
			"weir: s3 put: a quota is used up|reason quota after 1 attempts; last attempt: throttled",
			"weir: s3 put, limit all+day: throttled within the limits|limit all (0/0s) had 0 of 0 left; limit day (0/0s) had 0 of 0 left; 7 attempts were in flight",
			"weir: s3: breaker opened|cause: ",
			"weir: shared store is unreachable|",
			"weir: resolved: shared store is unreachable|it was unreachable for 1m30s, and 12 units were used in that time",
		}
		messages := b.messages()
		var got []string
		for _, m := range messages {
			detail := m.Detail
			if m.Kind == BreakerOpen {
				detail = "cause: "
			}
			got = append(got, m.Title()+"|"+detail)
			for _, secret := range []string{"hunter2", "sk-secret", "acme", "4711"} {
				if strings.Contains(m.Text()+m.Title(), secret) {
					t.Errorf("%s shows %s", m.Kind, secret)
				}
			}
			for _, part := range []string{"Host: web-1", "Since: ", "Runbook: https://wiki.example.com/weir#" + string(m.Kind)} {
				if !strings.Contains(m.Text(), part) {
					t.Errorf("%s does not say %q:\n%s", m.Kind, part, m.Text())
				}
			}
			if strings.Contains(m.Text(), "What to do: ") == m.Resolved {
				t.Errorf("%s, resolved %v, says what to do: %q", m.Kind, m.Resolved, m.Action)
			}
		}
		check(t, got, want...)
	})
}

// For random events, a subject has at most one alert per interval, an end is reported only after its beginning, and every event
// is in a message or counted as suppressed.
func TestLedgerKeepsItsPromises(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		l := ledger{interval: time.Minute, most: 1 + rng.IntN(4), entries: make(map[subject]*entry)}
		now := time.Unix(1e9, 0)
		alerted, told := make(map[subject]time.Time), make(map[subject]bool)
		var happened, said int64
		bad := make(map[subject]bool)
		hear := func(n notice) {
			said += n.suppressed
			if n.resolved {
				if !told[n.subject] {
					t.Fatalf("seed %d: %v is over and was never told", seed, n.subject)
				}
				told[n.subject] = false
				return
			}
			said++
			if at, ok := alerted[n.subject]; ok && now.Sub(at) < l.interval {
				t.Fatalf("seed %d: %v is told after %v", seed, n.subject, now.Sub(at))
			}
			alerted[n.subject], told[n.subject] = now, true
		}
		for range 60 {
			now = now.Add(time.Duration(rng.Int64N(int64(40 * time.Second))))
			s := subject{kind: Kinds[rng.IntN(len(Kinds))]}
			switch rng.IntN(4) {
			case 0:
				notices, next := l.due(now)
				for _, n := range notices {
					hear(n)
				}
				if !next.IsZero() && !next.After(now) {
					t.Fatalf("seed %d: due again at once", seed)
				}
			case 1:
				if s.kind.lasts() {
					bad[s] = false
					if n, ok := l.over(now, s, ""); ok {
						hear(n)
					}
				}
			default:
				happened++
				bad[s] = true
				if n, ok := l.happened(now, s, func() string { return "" }); ok {
					hear(n)
				}
			}
		}
		var pending int64
		for _, e := range l.entries {
			pending += e.suppressed
		}
		if said+pending+l.lost != happened || len(l.entries) > l.most {
			t.Fatalf("seed %d: %d happened, %d said, %d to be said, %d lost, %d subjects of %d", seed, happened, said, pending, l.lost, len(l.entries), l.most)
		}
		now = now.Add(time.Hour)
		for range 3 {
			notices, _ := l.due(now)
			for _, n := range notices {
				hear(n)
			}
			now = now.Add(time.Hour)
		}
		for s, e := range l.entries {
			if s.kind.lasts() && bad[s] != told[s] || !s.kind.lasts() && (told[s] || e.bad) {
				t.Fatalf("seed %d: %v is told to be %v in the end", seed, s, told[s])
			}
		}
	}
}

func TestNothingBlocksAndNothingIsLostUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := &box{send: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }}
		good := new(box)
		n := start(t, Config{Targets: []Target{stuck, good}, Queue: 5000, Subjects: 4000})
		e, began := n.Events(), time.Now()
		var wg sync.WaitGroup
		for i := range 10_000 {
			wg.Go(func() { e.GaveUp(exhausted(weir.Subject{Upstream: "s3", Operation: fmt.Sprint("o", i%5000)})) })
		}
		wg.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("events waited %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := n.Close(ctx)
		if err == nil || !strings.Contains(err.Error(), "messages to box were dropped") {
			t.Errorf("close says %v", err)
		}
		synctest.Wait()
		stats, untold := n.Stats()
		if s := stats[1]; s.Sent != 4000 || s.Dropped+s.Failed+s.Waiting != 0 || len(good.messages()) != 4000 {
			t.Errorf("%+v, want 4,000 sent, the other target notwithstanding", s)
		}
		if s := stats[0]; s.Sent != 0 || s.Failed+s.Dropped != 4000 || s.Waiting != 0 {
			t.Errorf("%+v, want 4,000 counted as failed or dropped", s)
		}
		var suppressed int64
		for _, e := range n.ledger.entries {
			suppressed += e.suppressed
		}
		if untold+suppressed+4000 != 10_000 {
			t.Errorf("%d untold, %d suppressed, 4,000 told of 10,000", untold, suppressed)
		}
	})
}

func TestAFullQueueDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{send: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }}
		n := start(t, Config{Targets: []Target{b}, Queue: 3})
		for i := range 10 {
			n.Events().GaveUp(exhausted(weir.Subject{Upstream: "s3", Operation: fmt.Sprint(i)}))
			synctest.Wait()
		}
		if s, _ := n.Stats(); s[0].Dropped != 6 || s[0].Waiting != 4 {
			t.Errorf("%+v, want 1 under way, 3 waiting, 6 dropped", s[0])
		}
	})
}

func TestAttemptsAreBoundedAndHintsObeyed(t *testing.T) {
	tests := []struct {
		name string
		err  *SendError
		n    int
		low  time.Duration
		high time.Duration
	}{
		{"a server that fails", &SendError{Status: 500}, 4, 3500 * time.Millisecond, 7 * time.Second},
		{"a hint", &SendError{Status: 429, After: time.Minute}, 4, 3 * time.Minute, 3 * time.Minute},
		{"a hint too long to wait for", &SendError{Status: 429, After: time.Hour}, 1, 0, 0},
		{"for good", &SendError{Status: 404, Final: true}, 1, 0, 0},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			b := &box{send: func(context.Context, int) error { return tt.err }}
			n := start(t, Config{Targets: []Target{b}})
			began := time.Now()
			n.Events().GaveUp(exhausted(put))
			if err := n.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); b.n != tt.n || took < tt.low || took > tt.high {
				t.Errorf("%s: %d attempts in %v, want %d in %v to %v", tt.name, b.n, took, tt.n, tt.low, tt.high)
			}
			if s, _ := n.Stats(); s[0].Failed != 1 {
				t.Errorf("%s: %+v, want 1 failed", tt.name, s[0])
			}
		})
	}
}

func TestATargetThatPanicsOrLogsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var n int32
		b := &box{send: func(context.Context, int) error {
			if atomic.AddInt32(&n, 1) == 1 {
				panic("token=hunter2")
			}
			return nil
		}}
		notifier := start(t, Config{Targets: []Target{b}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		notifier.Events().GaveUp(exhausted(put))
		notifier.Events().GaveUp(exhausted(weir.Subject{Upstream: "other"}))
		if err := notifier.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s, _ := notifier.Stats(); s[0].Failed != 1 || s[0].Sent != 1 {
			t.Errorf("%+v, want 1 failed and 1 sent", s[0])
		}
		if !strings.Contains(log.String(), "it panicked") || strings.Contains(log.String(), "hunter2") {
			t.Errorf("log: %s", log.String())
		}
	})
}

func TestKindsThatAreNotWantedAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(box)
		n := start(t, Config{Targets: []Target{b}, Kinds: []Kind{Fallback}})
		n.Events().GaveUp(exhausted(put))
		n.Events().Breaker(weir.BreakerEvent{Upstream: "s3", Change: breaker.Change{To: breaker.Open}})
		n.Fleet().Fallback(fleet.FallbackEvent{Away: true})
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.messages(); len(got) != 1 || got[0].Kind != Fallback {
			t.Errorf("told %v", got)
		}
		n.Events().GaveUp(exhausted(put)) // after Close, nothing happens
	})
}

func TestConfigSaysEverythingThatIsWrong(t *testing.T) {
	tests := []struct {
		c    Config
		want string
	}{
		{Config{}, "targets: want at least one"},
		{Config{Kinds: []Kind{"all"}}, `unknown kind "all"`},
		{Config{Interval: time.Millisecond}, "interval 1ms"},
		{Config{Queue: -1}, "queue -1"},
		{Config{Runbook: "wiki"}, "runbook"},
	}
	for _, tt := range tests {
		if _, err := New(tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.c, err, tt.want)
		}
	}
}

// BenchmarkEvent measures the cost of an event for its call.
func BenchmarkEvent(b *testing.B) {
	n := start(b, Config{Targets: []Target{new(box)}})
	e := n.Events()
	gaveUp := exhausted(put)
	refused := weir.Refused{Upstream: put.Upstream, Operation: put.Operation, Reason: weir.RateLimited}
	for name, tell := range map[string]func(){
		"refused": func() { e.Refused(refused) },
		"gave up": func() { e.GaveUp(gaveUp) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tell()
			}
		})
	}
}

// A system error is reported immediately, with the correlation ID of its call. An operator of weir cannot repair other errors.
func TestASystemErrorIsToldWithItsCorrelationID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(box)
		n := start(t, Config{Targets: []Target{b}})
		e, began := n.Events(), time.Now()
		rejected := func(o outcome.Outcome) { e.Rejected(weir.Ended{Subject: put, Attempt: 1, Outcome: o}) }
		rejected(outcome.Outcome{Class: outcome.Rejected, Code: "400"})
		rejected(outcome.Outcome{Class: outcome.Rejected, Code: "403"})
		rejected(outcome.Outcome{Class: outcome.Rejected, Code: outcome.InternalError})
		rejected(outcome.Outcome{Class: outcome.Rejected, Code: outcome.InternalError, Unsent: true})
		n.Failed("hook", "request not stored: queue", "call-7")
		n.Failed("", "panic", "https://ada:secret@h/")
		synctest.Wait()
		check(t, b.story(began), "0s: system s3 put +0", "0s: system hook +0", "0s: system  +0")
		for i, want := range []string{"correlation id " + put.ID, "request not stored: queue, correlation id call-7", "panic, correlation id https://***h/"} {
			if m := b.messages()[i]; !strings.HasSuffix(m.Detail, want) || !strings.Contains(m.Text(), want) {
				t.Errorf("message %d says %q, want %q", i, m.Detail, want)
			}
		}
	})
}
