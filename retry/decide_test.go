package retry_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func says(after time.Duration) outcome.Hint { return outcome.Hint{Said: true, After: after} }

func TestDecide(t *testing.T) {
	fixed := retry.Config{Jitter: retry.NoJitter}
	failed := outcome.Outcome{Class: outcome.Failed}
	with := func(class outcome.Class, code string, h outcome.Hint) outcome.Outcome {
		return outcome.Outcome{Class: class, Code: code, Hint: h}
	}
	again := func(d time.Duration) retry.Decision { return retry.Decision{Again: true, After: d, Delay: d} }
	asked := func(d time.Duration) retry.Decision {
		return retry.Decision{Again: true, After: d, Delay: 100 * time.Millisecond}
	}
	no := func(why error) retry.Decision { return retry.Decision{Why: why} }
	ms := time.Millisecond

	for _, tt := range []struct {
		name string
		c    retry.Config
		a    retry.Attempt
		want retry.Decision
	}{
		{"ok", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.OK, "", outcome.Hint{Advice: outcome.Again})}, retry.Decision{}},
		{"failed once", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: failed}, again(100 * ms)},
		{"failed twice", fixed, retry.Attempt{Number: 2, Safe: true, Outcome: failed}, again(200 * ms)},
		{"failed three times", fixed, retry.Attempt{Number: 3, Safe: true, Outcome: failed}, no(retry.ErrAttempts)},
		{"retries off", retry.Config{Attempts: 1}, retry.Attempt{Number: 1, Safe: true, Outcome: failed}, no(retry.ErrAttempts)},
		{"unknown", fixed, retry.Attempt{Number: 1, Safe: true}, again(100 * ms)},
		{"rejected", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Rejected, "404", outcome.Hint{})}, no(retry.ErrNotRetryable)},
		{"canceled", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Canceled, "", outcome.Hint{Advice: outcome.Again})}, no(retry.ErrNotRetryable)},

		{"unsafe", fixed, retry.Attempt{Number: 1, Outcome: failed}, no(retry.ErrUnsafe)},
		{"unsafe and throttled", fixed, retry.Attempt{Number: 1, Outcome: with(outcome.Throttled, "429", outcome.Hint{})}, no(retry.ErrUnsafe)},
		{"unsafe but undone", fixed, retry.Attempt{Number: 1, Outcome: outcome.Outcome{Class: outcome.Failed, Undone: true}}, again(100 * ms)},
		{"unsafe though asked for", fixed, retry.Attempt{Number: 1, Outcome: with(outcome.Failed, "", outcome.Hint{Advice: outcome.Again})}, no(retry.ErrUnsafe)},

		{"advised against", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", outcome.Hint{Advice: outcome.NotAgain})}, no(retry.ErrAdvice)},
		{"advised for", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Rejected, "409", outcome.Hint{Advice: outcome.Again})}, again(100 * ms)},
		{"advised against a listed code", retry.Config{Codes: []string{"Busy"}}, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Failed, "Busy", outcome.Hint{Advice: outcome.NotAgain})}, no(retry.ErrAdvice)},

		{"listed code", retry.Config{Jitter: retry.NoJitter, Codes: []string{"Busy", "Conflict"}}, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Rejected, "Conflict", outcome.Hint{})}, again(100 * ms)},
		{"excluded code", retry.Config{NotCodes: []string{"Down"}}, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Failed, "Down", outcome.Hint{Advice: outcome.Again})}, no(retry.ErrNotRetryable)},
		{"class not listed", retry.Config{RetryOn: []outcome.Class{outcome.Throttled}}, retry.Attempt{Number: 1, Safe: true, Outcome: failed}, no(retry.ErrNotRetryable)},
		{"class listed", retry.Config{Jitter: retry.NoJitter, RetryOn: []outcome.Class{outcome.Rejected}}, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Rejected, "", outcome.Hint{})}, again(100 * ms)},

		{"hint of nothing", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", says(0))}, again(100 * ms)},
		{"hint under the delay", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", says(99*ms))}, again(100 * ms)},
		{"hint not said", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", outcome.Hint{After: time.Hour})}, again(100 * ms)},
		{"hint too long", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", says(61*time.Second))}, retry.Decision{Why: retry.ErrHint, After: 61 * time.Second}},
		{"hint of three days", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", says(72*time.Hour))}, retry.Decision{Why: retry.ErrHint, After: 72 * time.Hour}},
		{"hint of for ever", retry.Config{Jitter: retry.NoJitter, MaxHint: math.MaxInt64}, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", says(math.MaxInt64))}, asked(math.MaxInt64)},
		{"hint cut to the slack", retry.Config{Jitter: retry.NoJitter, HintSlack: 5 * time.Second}, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", says(time.Hour))}, asked(5100 * ms)},
		{"quota used up", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", outcome.Hint{Quota: true})}, no(retry.ErrQuota)},
		{"quota used up for a second", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: with(outcome.Throttled, "", outcome.Hint{Quota: true, Said: true, After: time.Second, Advice: outcome.Again})}, no(retry.ErrQuota)},

		{"deadline far", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: failed, Bounded: true, Left: 101 * ms}, again(100 * ms)},
		{"deadline at the end of the wait", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: failed, Bounded: true, Left: 100 * ms}, retry.Decision{Why: retry.ErrDeadline, After: 100 * ms}},
		{"deadline now", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: failed, Bounded: true}, retry.Decision{Why: retry.ErrDeadline, After: 100 * ms}},
		{"deadline past", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: failed, Bounded: true, Left: -time.Hour}, retry.Decision{Why: retry.ErrDeadline, After: 100 * ms}},
		{"no deadline", fixed, retry.Attempt{Number: 1, Safe: true, Outcome: failed, Left: -time.Hour}, again(100 * ms)},
	} {
		if got := tt.c.Decide(tt.a, nil); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestThoseToldTheSameInstantDoNotReturnTogether(t *testing.T) {
	c := retry.Config{Jitter: retry.NoJitter}
	for _, hint := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		seen := map[time.Duration]bool{}
		for range 1000 {
			d := c.Decide(retry.Attempt{Number: 1, Safe: true, Outcome: outcome.Outcome{Class: outcome.Throttled, Hint: says(hint)}}, nil)
			if d.After < hint || d.After > hint+min(hint/10, 5*time.Second) {
				t.Fatalf("told %v, waits %v", hint, d.After)
			}
			seen[d.After] = true
		}
		if len(seen) < 990 {
			t.Errorf("told %v, 1000 callers return at %d instants", hint, len(seen))
		}
	}
}

// A chooser creates random configurations and attempts.
type chooser struct{ *rand.Rand }

func (r chooser) bool() bool { return r.IntN(2) == 0 }

func (r chooser) duration() time.Duration {
	return time.Duration(r.Int64N(int64(2 * time.Minute)))
}

func (r chooser) some(codes ...string) (list []string) {
	for _, c := range codes {
		if r.IntN(3) == 0 {
			list = append(list, c)
		}
	}
	return list
}

func (r chooser) config() retry.Config {
	c := retry.Config{
		Attempts: r.IntN(8), Base: r.duration() / 100, Jitter: jitters[r.IntN(len(jitters))],
		MaxHint: r.duration(), Codes: r.some("a", "b"), NotCodes: r.some("c", "d"),
	}
	c.Cap = c.WithDefaults().Base + r.duration()
	if r.bool() {
		c.HintSlack = r.duration()
	}
	for _, class := range []outcome.Class{outcome.Unknown, outcome.Throttled, outcome.Failed, outcome.Rejected} {
		if r.bool() {
			c.RetryOn = append(c.RetryOn, class)
		}
	}
	return c
}

func (r chooser) outcome() outcome.Outcome {
	return outcome.Outcome{
		Class: outcome.Classes[r.IntN(len(outcome.Classes))], Code: string(rune('a' + r.IntN(6))), Undone: r.bool(),
		Hint: outcome.Hint{Advice: outcome.Advice(max(r.IntN(6)-3, 0)), Said: r.bool(), After: r.duration(), Quota: r.IntN(8) == 0},
	}
}

func (r chooser) attempt() retry.Attempt {
	return retry.Attempt{
		Number: 1 + r.IntN(8), Outcome: r.outcome(), Safe: r.bool(), Prev: r.duration(),
		Bounded: r.bool(), Left: r.duration() - time.Second,
	}
}

// check returns the broken promise of a decision.
func check(c retry.Config, a retry.Attempt, d retry.Decision) error {
	o, full := a.Outcome, c.WithDefaults()
	worth := o.Hint.Advice == outcome.Again || slices.Contains(c.Codes, o.Code) || slices.Contains(full.RetryOn, o.Class)
	switch {
	case d.Again != (d.Why == nil) && o.Class != outcome.OK:
		return errors.New("a refusal without a reason, or the reverse")
	case d.After < 0:
		return errors.New("negative wait")
	case d.Why == retry.ErrDeadline && (!a.Bounded || d.After < a.Left):
		return errors.New("refused for a deadline that it would have met")
	case d.Why == retry.ErrHint && (!o.Hint.Said || d.After <= full.MaxHint):
		return errors.New("refused for a hint that is short enough")
	case !d.Again:
		return nil
	case o.Class == outcome.OK || o.Class == outcome.Canceled || !worth || slices.Contains(c.NotCodes, o.Code):
		return errors.New("repeats what is not worth repeating")
	case o.Hint.Advice == outcome.NotAgain:
		return errors.New("repeats against advice")
	case o.Hint.Quota:
		return errors.New("waits for a quota")
	case !a.Safe && !o.Undone:
		return errors.New("repeats what may have been done")
	case a.Number >= full.Attempts:
		return errors.New("repeats too often")
	case o.Hint.Said && c.HintSlack <= 0 && d.After < o.Hint.After:
		return errors.New("comes back earlier than asked")
	case o.Hint.Said && c.HintSlack > 0 && d.After < min(o.Hint.After, c.HintSlack):
		return errors.New("comes back earlier than asked, and than the slack allows")
	case a.Bounded && d.After >= a.Left:
		return errors.New("waits past the deadline")
	case float64(d.After) > max(bound(c), float64(full.MaxHint)*1.1):
		return errors.New("waits longer than the cap and the longest hint")
	}
	return nil
}

func TestDecideKeepsItsPromises(t *testing.T) {
	seed := rand.Uint64()
	r := chooser{rand.New(rand.NewPCG(seed, 0))}
	again, whys := 0, map[error]int{}
	for range 200_000 {
		c, a := r.config(), r.attempt()
		if err := c.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		d := c.Decide(a, r.Rand)
		if err := check(c, a, d); err != nil {
			t.Fatalf("seed %d: %v\nconfig  %+v\nattempt %+v\ndecision %+v", seed, err, c, a, d)
		}
		if d.Again {
			again++
		}
		whys[d.Why]++
	}
	// Every case must occur, or the test proves nothing.
	for _, why := range []error{retry.ErrNotRetryable, retry.ErrAdvice, retry.ErrUnsafe, retry.ErrAttempts, retry.ErrQuota, retry.ErrHint, retry.ErrDeadline} {
		if whys[why] < 300 {
			t.Errorf("seed %d: only %d refused because %v", seed, whys[why], why)
		}
	}
	if again < 10_000 {
		t.Errorf("seed %d: only %d repeated", seed, again)
	}
}

// A reply is an error from the upstream.
type reply struct{ n int }

func (e *reply) Error() string { return fmt.Sprintf("reply %d", e.n) }

// exhaust is the loop of the root package without the waiting: it makes attempts with the outcomes of next until Decide refuses.
func exhaust(c retry.Config, r *rand.Rand, patience time.Duration, next func(n int) outcome.Outcome) *retry.GaveUpError {
	elapsed, prev := time.Duration(0), time.Duration(0)
	for n := 1; ; n++ {
		elapsed += time.Millisecond
		o := next(n)
		d := c.Decide(retry.Attempt{Number: n, Outcome: o, Safe: true, Prev: prev, Bounded: true, Left: patience - elapsed}, r)
		if d.Again {
			elapsed, prev = elapsed+d.After, d.After
			continue
		}
		return &retry.GaveUpError{
			Upstream: "s3", Operation: "put", Attempts: n, Elapsed: elapsed,
			Wait: d.After, Why: d.Why, Last: &reply{n}, Outcome: o,
		}
	}
}

func TestAttemptsAreAsManyAsConfigured(t *testing.T) {
	seed := rand.Uint64()
	r := chooser{rand.New(rand.NewPCG(seed, 0))}
	worth := []outcome.Class{outcome.Throttled, outcome.Failed, outcome.Unknown}
	for range 2000 {
		c := retry.Config{Attempts: r.IntN(50), Jitter: jitters[r.IntN(len(jitters))]}
		made := 0
		e := exhaust(c, r.Rand, time.Hour, func(int) outcome.Outcome {
			made++
			return outcome.Outcome{Class: worth[r.IntN(len(worth))]}
		})
		if want := c.WithDefaults().Attempts; made != want || e.Attempts != want || e.Why != retry.ErrAttempts {
			t.Fatalf("seed %d: %d attempts made, %d told, because %v; want %d", seed, made, e.Attempts, e.Why, want)
		}
	}
}

func TestGivingUpTellsEverything(t *testing.T) {
	seed := rand.Uint64()
	r := chooser{rand.New(rand.NewPCG(seed, 0))}
	for range 5000 {
		made, last := 0, outcome.Outcome{}
		e := exhaust(r.config(), r.Rand, r.duration(), func(n int) outcome.Outcome {
			made, last = n, r.outcome()
			if last.Class == outcome.OK {
				last.Class = outcome.Failed
			}
			return last
		})
		err := fmt.Errorf("wrapped: %w", e)
		got, ok := errors.AsType[*reply](err)
		if !ok || got.n != made || e.Attempts != made || !errors.Is(err, e.Why) || e.Why == nil ||
			e.Outcome.Code != last.Code || e.Outcome.Class != last.Class || e.Elapsed <= 0 {
			t.Fatalf("seed %d: %+v after %d attempts, the last %+v", seed, e, made, last)
		}
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	c, _ := retry.Schedule("aws-2026")
	a := retry.Attempt{Number: 1, Safe: true, Outcome: outcome.Outcome{Class: outcome.Throttled, Hint: says(time.Second)}}
	if n := testing.AllocsPerRun(100, func() { c.Decide(a, nil) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(uint64(1), 1, int64(0), int64(0), int64(0), false)
	f.Add(uint64(2), math.MaxInt, int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), true)
	f.Add(uint64(3), -1, int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), true)
	f.Fuzz(func(t *testing.T, seed uint64, number int, after, maxHint, left int64, said bool) {
		r := chooser{rand.New(rand.NewPCG(seed, 0))}
		c, a := r.config(), r.attempt()
		a.Number, a.Left = number, time.Duration(left)
		a.Outcome.Hint.After, a.Outcome.Hint.Said = time.Duration(after), said
		c.MaxHint = time.Duration(maxHint)
		d := c.Decide(a, r.Rand)
		if c.Validate() != nil {
			if d.After < 0 {
				t.Fatalf("%+v %+v: waits %v", c, a, d.After)
			}
			return
		}
		if err := check(c, a, d); err != nil {
			t.Fatalf("%v\nconfig  %+v\nattempt %+v\ndecision %+v", err, c, a, d)
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	zero := retry.Config{}
	aws, _ := retry.Schedule("aws-2026")
	hinted := outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown", Hint: says(time.Second)}
	for _, bb := range []struct {
		name string
		c    retry.Config
		a    retry.Attempt
	}{
		{"again", zero, retry.Attempt{Number: 1, Safe: true, Outcome: outcome.Outcome{Class: outcome.Failed}}},
		{"hint", aws, retry.Attempt{Number: 1, Safe: true, Outcome: hinted, Bounded: true, Left: time.Minute}},
		{"rejected", zero, retry.Attempt{Number: 1, Safe: true, Outcome: outcome.Outcome{Class: outcome.Rejected}}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bb.c.Decide(bb.a, nil)
			}
		})
	}
}
