package cascade_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/clock"
)

func newCascade(t testing.TB, c cascade.Config) *cascade.Cascade {
	t.Helper()
	k, err := cascade.New(c, cascade.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// hang returns a function that waits for the end of its context, except for instant tiers.
func hang(took map[string]time.Duration, instant ...string) func(context.Context, cascade.Turn) (string, error) {
	return func(ctx context.Context, turn cascade.Turn) (string, error) {
		for _, name := range instant {
			if turn.Tier == name {
				return name, ctx.Err()
			}
		}
		begin := clock.System.Now()
		<-ctx.Done()
		took[turn.Tier] = clock.System.Now() - begin
		return "", context.Cause(ctx)
	}
}

const ms = time.Millisecond

func TestEachTierHasItsPartOfTheDeadline(t *testing.T) {
	for _, tt := range []struct {
		name     string
		timeouts [3]time.Duration // 0: none
		deadline time.Duration    // of the cascade
		own      time.Duration    // of the caller; 0: none
		want     [3]time.Duration
	}{
		// A twentieth of the deadline, at most 250 ms, is reserved for the instant tiers.
		{"equal parts", [3]time.Duration{}, 3250 * ms, 0, [3]time.Duration{3087500 * time.Microsecond / 3, 3087500 * time.Microsecond / 3, 3087500 * time.Microsecond / 3}},
		{"what those below need less", [3]time.Duration{0, 2 * time.Second, time.Second}, 30250 * ms, 0, [3]time.Duration{27 * time.Second, 2 * time.Second, time.Second}},
		{"a first tier that needs less", [3]time.Duration{2 * time.Second, 0, 0}, 30250 * ms, 0, [3]time.Duration{2 * time.Second, 14 * time.Second, 14 * time.Second}},
		{"all need less", [3]time.Duration{1, 2, 3}, time.Hour, 0, [3]time.Duration{1, 2, 3}},
		{"the caller is in a hurry", [3]time.Duration{}, time.Hour, 9250 * ms, [3]time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}},
		{"only the caller's deadline", [3]time.Duration{}, -1, 9250 * ms, [3]time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}},
		{"no deadline", [3]time.Duration{5 * time.Second, 1 * time.Second, 7 * time.Second}, -1, 0, [3]time.Duration{5 * time.Second, 1 * time.Second, 7 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tiers := five()
				for i := range 3 {
					tiers[i].Timeout = tt.timeouts[i]
				}
				c := newCascade(t, cascade.Config{Tiers: tiers, Deadline: tt.deadline})
				ctx, cancel := t.Context(), func() {}
				if tt.own > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.own)
				}
				defer cancel()
				took := map[string]time.Duration{}
				r, err := cascade.Run(ctx, c, hang(took, "static"))
				if err != nil || r.Tier != "static" || r.Above[2].Why != cascade.TimedOut {
					t.Fatalf("got %+v, %v", r, err)
				}
				for i, want := range tt.want {
					if got := took[tiers[i].Name]; (got - want).Abs() > time.Microsecond {
						t.Errorf("%s had %v, want %v", tiers[i].Name, got, want)
					}
				}
			})
		})
	}
}

// A hanging tier gets all the time except twice the usual time of the lower tiers, and those answer.
func TestATierHasAllThatThoseBelowDoNotNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCascade(t, cascade.Config{Tiers: five()[:3], Deadline: 30 * time.Second})
		takes := map[string]time.Duration{"primary": time.Second, "secondary": 2 * time.Second, "cached": ms}
		var only string
		ask := func(ctx context.Context, turn cascade.Turn) (string, error) {
			if only != "" && turn.Tier != only {
				return "", cascade.ErrPass
			}
			return turn.Tier, clock.System.Sleep(ctx, takes[turn.Tier])
		}
		for only = range takes {
			for range 9 {
				if _, err := cascade.Run(t.Context(), c, ask); err != nil {
					t.Fatal(err)
				}
			}
		}
		only, takes["primary"] = "", time.Hour
		begin := clock.System.Now()
		r, err := cascade.Run(t.Context(), c, ask)
		if err != nil || r.Tier != "secondary" || r.Above[0].Why != cascade.TimedOut {
			t.Fatalf("got %+v, %v", r, err)
		}
		// cached is so fast that it gets the minimum of 50ms
		if took := clock.System.Now() - begin; took != 30*time.Second-4*time.Second-50*ms+2*time.Second {
			t.Errorf("took %v", took)
		}
		if v := c.View()[1]; v.Takes != 2*time.Second {
			t.Errorf("got %+v", v)
		}
	})
}

// Four times its usual time is enough time for a tier.
func TestWhoIsSlowForATierCountsByWhatItUsuallyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCascade(t, cascade.Config{Tiers: five()[:1], Deadline: time.Hour})
		takes := 100 * ms
		ask := func(ctx context.Context, turn cascade.Turn) (string, error) {
			return turn.Tier, clock.System.Sleep(ctx, takes)
		}
		call := func(patience time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, _ = cascade.Run(ctx, c, ask)
		}
		for range 9 {
			call(time.Second)
		}
		takes = time.Hour
		for range 9 {
			call(399 * ms)
		}
		if v := c.View()[0]; v.Phase != breaker.Closed {
			t.Errorf("its callers were in a hurry, and it is %v", v.Phase)
		}
		for range 3 {
			call(400 * ms)
		}
		if v := c.View()[0]; v.Phase != breaker.Open {
			t.Errorf("it had its time, and is %v", v.Phase)
		}
	})
}

// A tier that will not be asked needs no time.
func TestTiersThatAreOpenLeaveTheirTimeToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCascade(t, cascade.Config{Tiers: five()[:3], Deadline: 30 * time.Second})
		c.Breaker("secondary").ForceOpen(c.Now(), time.Hour)
		c.Breaker("cached").ForceOpen(c.Now(), 20*time.Second) // closed again before the deadline
		took := map[string]time.Duration{}
		_, err := cascade.Run(t.Context(), c, hang(took))
		if took["primary"] != 15*time.Second || errors.Is(err, cascade.ErrTimeout) != true {
			t.Errorf("took %v, %v", took, err)
		}
	})
}

func TestInstantTiersAnswerWhenAllTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCascade(t, cascade.Config{Tiers: five(), Deadline: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		r, err := cascade.Run(ctx, c, func(ctx context.Context, turn cascade.Turn) (string, error) {
			if turn.Tier == "primary" {
				time.Sleep(20 * time.Second) // ignores its context
				return "", errors.New("late")
			}
			return turn.Tier, ctx.Err()
		})
		if err != nil || r.Tier != "static" || time.Since(begin) != 20*time.Second {
			t.Fatalf("got %+v, %v after %v", r, err, time.Since(begin))
		}
		if a := r.Above; a[0].Why != cascade.TimedOut || a[1].Why != cascade.NoTime || a[2].Why != cascade.NoTime {
			t.Errorf("above: %v", a)
		}
	})
}

// Three consecutive timeouts open the breaker of a tier that had enough time. Timeouts of callers with short timeouts do
// not count.
func TestTimeoutsCountIfTheTierHadItsTime(t *testing.T) {
	for _, tt := range []struct {
		own     time.Duration
		timeout time.Duration
		want    breaker.Phase
	}{
		{0, 0, breaker.Open},
		{20 * time.Second, 0, breaker.Open},
		{10 * time.Second, 0, breaker.Closed},
		{10 * time.Second, 6 * time.Second, breaker.Open},
		{4 * time.Second, 6 * time.Second, breaker.Open},
		{2 * time.Second, 6 * time.Second, breaker.Closed},
	} {
		synctest.Test(t, func(t *testing.T) {
			tiers := five()[:3]
			tiers[0].Timeout, tiers[1].Instant, tiers[2].Instant = tt.timeout, true, true
			c := newCascade(t, cascade.Config{Tiers: tiers, Deadline: 30 * time.Second})
			for range 3 {
				ctx, cancel := t.Context(), func() {}
				if tt.own > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.own)
				}
				if r, err := cascade.Run(ctx, c, hang(map[string]time.Duration{}, "secondary")); err != nil || r.Above[0].Why != cascade.TimedOut {
					t.Fatal(r, err)
				}
				cancel()
			}
			if v := c.View()[0]; v.Phase != tt.want {
				t.Errorf("%+v: got %v", tt, v.Phase)
			}
		})
	}
}

// An upstream's response counts as it is, even if it is late.
func TestLateAnswersCountAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCascade(t, cascade.Config{Tiers: five(), Deadline: 30 * time.Second})
		r, err := cascade.Run(t.Context(), c, func(ctx context.Context, turn cascade.Turn) (string, error) {
			if turn.Index > 0 {
				return "", nil
			}
			<-ctx.Done()
			return "", throttled(time.Minute)
		})
		if err != nil || r.Above[0].Why != cascade.Failed || c.View()[0].For != time.Minute {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

// A late refusal still counts as a refusal.
func TestLateRefusalIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tiers := five()
		tiers[0].Health = breaker.Config{Failures: 1}
		c := newCascade(t, cascade.Config{Tiers: tiers})
		r, err := cascade.Run(t.Context(), c, func(ctx context.Context, turn cascade.Turn) (string, error) {
			if turn.Index > 0 {
				return "", nil
			}
			<-ctx.Done()
			return "", refused("rate_limited", time.Second)
		})
		if err != nil || r.Above[0].Why != cascade.Refused || c.View()[0].Phase != breaker.Closed {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

func TestKeptContextOutlivesTheTierAndItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCascade(t, cascade.Config{Tiers: five(), Deadline: 10 * time.Second})
		ctx, leave := context.WithCancelCause(t.Context())
		var release context.CancelFunc
		r, err := cascade.Run(ctx, c, func(ctx context.Context, _ cascade.Turn) (context.Context, error) {
			ctx, release = cascade.Keep(ctx)
			time.Sleep(time.Second)
			return ctx, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if r.Value.Err() != nil {
			t.Fatal("it ended with the tier's time:", context.Cause(r.Value))
		}
		errGone := errors.New("gone")
		leave(errGone)
		synctest.Wait()
		if context.Cause(r.Value) != errGone {
			t.Errorf("the caller left: got %v", context.Cause(r.Value))
		}
		release()
	})
}

func TestReleaseEndsWhatWasKept(t *testing.T) {
	c := newCascade(t, cascade.Config{Tiers: five()})
	r, err := cascade.Run(t.Context(), c, func(ctx context.Context, _ cascade.Turn) (context.Context, error) {
		kept, release := cascade.Keep(ctx)
		t.Cleanup(release)
		release()
		return kept, nil
	})
	if err != nil || r.Value.Err() == nil {
		t.Errorf("got %v, %v", err, r.Value.Err())
	}
	ctx, release := cascade.Keep(t.Context()) // without a cascade
	if release(); ctx.Err() == nil {
		t.Error("not released")
	}
}

func TestKeptContextEndsWithTheTiersTimeOrFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCascade(t, cascade.Config{Tiers: five(), Deadline: 10 * time.Second})
		var first, second context.Context
		r, err := cascade.Run(t.Context(), c, func(ctx context.Context, turn cascade.Turn) (string, error) {
			kept, release := cascade.Keep(ctx)
			t.Cleanup(release)
			switch turn.Index {
			case 0:
				first = kept
				<-kept.Done()
				return "", context.Cause(kept)
			case 1:
				second = kept
				return "", down
			}
			return "", nil
		})
		synctest.Wait()
		if err != nil || r.Above[0].Why != cascade.TimedOut || context.Cause(first) != cascade.ErrTimeout {
			t.Errorf("got %+v, %v, %v", r, err, context.Cause(first))
		}
		if second.Err() == nil {
			t.Error("the second tier failed, and what it kept goes on")
		}
	})
}

// An answer at the exact moment of the timeout may count or not. Its context from Keep must be alive or ended
// accordingly.
func TestAnswerAtTheLastMoment(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			c := newCascade(t, cascade.Config{Tiers: five()[:2], Deadline: 10 * time.Second})
			var kept [2]context.Context
			r, err := cascade.Run(t.Context(), c, func(ctx context.Context, turn cascade.Turn) (string, error) {
				k, release := cascade.Keep(ctx)
				t.Cleanup(release)
				kept[turn.Index] = k
				if turn.Index == 0 {
					time.Sleep(turn.Time)
				}
				return "", nil
			})
			synctest.Wait()
			if err != nil || kept[r.Index].Err() != nil {
				t.Errorf("%+v, %v: the answer's context has ended", r, err)
			}
		})
	}
}
