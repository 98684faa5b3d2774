package play_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/play"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/retry"
)

// Policies with and without what protects an upstream.
var (
	direct      *weir.Policy
	bounded     = &weir.Policy{Concurrency: weir.Concurrency{Auto: true}}
	unprotected = &weir.Policy{Budget: retry.BudgetConfig{Off: true}, Breaker: breaker.Config{Off: true}}
	nervous     = &weir.Policy{
		Budget: unprotected.Budget, Breaker: breaker.Config{Consecutive: 5, Open: 2 * time.Second, Successes: 1},
		Timeouts: weir.Timeouts{Attempt: 800 * time.Millisecond},
	}
	limited = &weir.Policy{Concurrency: bounded.Concurrency, Limits: rate(280, 28), MaxWait: 500 * time.Millisecond}
	fair    = &weir.Policy{Concurrency: bounded.Concurrency, Limits: rate(280, 28), MaxWait: 500 * time.Millisecond, Fair: weir.Fair{By: "tenant"}}
)

func rate(perSecond, burst int64) []limit.Limit {
	return []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: perSecond, Per: time.Second, Burst: burst}}}
}

// usual returns a story that is played without story files, by the begin of its title.
func usual(t *testing.T, target *play.Target, title string) play.Story {
	t.Helper()
	all, _ := target.Stories()
	for _, s := range all {
		if strings.HasPrefix(s.Title, title) {
			s, _, err := target.Complete(s)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	t.Fatalf("no story %q", title)
	return play.Story{}
}

// Each known failure occurs without the protection and not with it, for each seed.
func TestKnownFailuresOccurWithoutProtectionOnly(t *testing.T) {
	const scale = 6 // as many fewer calls and workers, to save time
	stuck := func(x *play.Score) bool { return x.Stuck() && x.RecoveredMS == nil }
	within := func(d time.Duration) func(*play.Score) bool {
		return func(x *play.Score) bool {
			return x.RecoveredMS != nil && *x.RecoveredMS <= d.Milliseconds() && !x.Stuck() && x.Openings < 3
		}
	}
	for _, c := range []struct {
		story, way string
		policy     *weir.Policy
		want       func(*play.Score) bool
	}{
		{"retry storm", "direct", direct, stuck},
		{"retry storm", "unprotected", unprotected, stuck},
		{"retry storm", "bounded", bounded, within(8 * time.Second)},
		{"breaker flap", "nervous", nervous, func(x *play.Score) bool { return x.Stuck() && x.Openings >= 3 }},
		{"breaker flap", "bounded", bounded, within(12 * time.Second)},
		{"cold cache", "direct", direct, stuck},
		{"cold cache", "bounded", bounded, within(time.Minute)},
		{"lease expiry", "direct", direct, stuck},
		{"lease expiry", "bounded", bounded, within(90 * time.Second)},
		{"noisy tenant", "direct", direct, stuck},
		{"noisy tenant", "limited", limited, func(x *play.Score) bool { return x.Quiet < 0.9 }},
		{"noisy tenant", "fair", fair, func(x *play.Score) bool { return x.Quiet >= 0.995 && x.RecoveredMS != nil }},
	} {
		t.Run(c.story+"/"+c.way, func(t *testing.T) {
			t.Parallel()
			policy := c.policy
			target := &play.Target{Name: "api"}
			if policy != nil {
				target.Policy = *policy
			}
			s := usual(t, target, c.story)
			s.Machine.Does, s.Callers.Ask, s.Machine.Keys.Count = s.Machine.Does/scale, s.Callers.Ask/scale, s.Machine.Keys.Count/scale
			if policy != nil && len(policy.Limits) > 0 {
				policy = new(*policy)
				policy.Limits = rate(280/scale, 28/scale)
			}
			for seed := range uint64(5) {
				x, err := s.Play(t.Context(), seed, policy, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !c.want(x) {
					recovered := int64(-1)
					if x.RecoveredMS != nil {
						recovered = *x.RecoveredMS
					}
					t.Errorf("seed %d: recovered after %d ms, %+v", seed, recovered, *x)
				}
			}
		})
	}
}

// Ten processes keep their limit while their store is away, and do not overload it when it returns.
func TestFleetKeepsLimitWithoutItsStore(t *testing.T) {
	t.Parallel()
	target := &play.Target{Name: "api", Policy: weir.Policy{Limits: rate(40, 10)}, Store: &play.Store{Latency: time.Millisecond}}
	s := usual(t, target, "store outage")
	for seed := range uint64(5) {
		x, err := s.Play(t.Context(), seed, &target.Policy, target.Store)
		if err != nil {
			t.Fatal(err)
		}
		if f := x.Fleet; f.Over > 0 || f.RequestsBefore == 0 || f.RequestsAfter > 2*f.RequestsBefore || x.Answered < 0.99 {
			t.Errorf("seed %d: %+v, %.3f answered", seed, *f, x.Answered)
		}
	}
}

// A story about a file without a store, or without a breaker, is skipped with the reason.
func TestStoriesThatDoNotApplyAreSkipped(t *testing.T) {
	all, skipped := (&play.Target{Policy: weir.Policy{Breaker: breaker.Config{Off: true}}}).Stories()
	if len(all) != 4 || len(skipped) != 2 || !strings.Contains(skipped[0], "breaker: off") || !strings.Contains(skipped[1], "no shared store") {
		t.Errorf("%d stories, skipped %q", len(all), skipped)
	}
	if all, skipped = (&play.Target{Policy: weir.Policy{Limits: rate(10, 1)}, Store: &play.Store{}}).Stories(); len(all) != 6 || len(skipped) != 0 {
		t.Errorf("%d stories, skipped %q", len(all), skipped)
	}
}
