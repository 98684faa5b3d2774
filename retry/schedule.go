package retry

import (
	"maps"
	"slices"
	"time"
)

var schedules = map[string]Config{
	// The standard mode of the AWS SDKs before 2026-11-10. The first ceiling is botocore's 1s. The Go SDK began with 2s.
	"aws": {Attempts: 3, Base: time.Second, Cap: 20 * time.Second},

	// The SDKs' constants since then (aws-sdk-go-v2 v1.48.0): short delays for transient faults, long ones for throttles, and
	// hints obeyed within bounds.
	"aws-2026": {
		Attempts: 3, Base: 50 * time.Millisecond, ThrottleBase: time.Second, Cap: 20 * time.Second,
		HintSlack: 5 * time.Second,
	},

	// For programs that prefer waiting to failing. It lasts longer than both of the above. With retries held back while no call
	// succeeds, it makes no more attempts.
	"aws-patient": {
		Attempts: 8, Base: 100 * time.Millisecond, ThrottleBase: 2 * time.Second, Cap: 20 * time.Second,
		HintSlack: 5 * time.Second,
	},

	// AWS Elastic Disaster Recovery, whose control plane throttles strictly.
	"drs": {Attempts: 6, Base: time.Second, Cap: time.Minute, Jitter: RangeJitter, Low: 0.5, High: 1.5},

	// The first attempt and 3 retries: after 1s, 2s and 4s, plus up to 500ms.
	"messaging": {Attempts: 4, Base: time.Second, Cap: 32 * time.Second, Jitter: AddedJitter, Added: 500 * time.Millisecond},

	// Not for an upstream: a process that finds too few tokens in a shared bucket asks again after 2s, 4s and 8s
	// (weir.Policy.AskAgain).
	"not-enough-tokens": {Attempts: 4, Base: 2 * time.Second, Cap: 8 * time.Second, Jitter: NoJitter},

	// Language model providers: many short refusals, and callers that wait.
	"llm": {Attempts: 6, Base: 100 * time.Millisecond, Cap: 10 * time.Second, Jitter: DecorrelatedJitter},
}

// Schedule returns the named Config. ok is false if there is none by that name.
func Schedule(name string) (Config, bool) {
	c, ok := schedules[name]
	return c, ok
}

// Schedules returns the names that Schedule accepts, sorted.
func Schedules() []string { return slices.Sorted(maps.Keys(schedules)) }
