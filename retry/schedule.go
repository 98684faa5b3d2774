package retry

import (
	"maps"
	"slices"
	"time"
)

var schedules = map[string]Config{
	// The standard mode of the AWS SDKs before 2026-11-10. botocore's first
	// ceiling, 1s; the one for Go started at 2s.
	"aws": {Attempts: 3, Base: time.Second, Cap: 20 * time.Second},

	// What the SDKs do since then (aws-sdk-go-v2 v1.48.0): short delays for faults
	// that pass, long ones for throttles, and hints obeyed within limits.
	"aws-2026": {
		Attempts: 3, Base: 50 * time.Millisecond, ThrottleBase: time.Second, Cap: 20 * time.Second,
		HintSlack: 5 * time.Second,
	},

	// For a fleet that would rather wait than fail: it outlasts what either of the two
	// does, and with retries held back while nothing succeeds makes no more attempts.
	"aws-patient": {
		Attempts: 8, Base: 100 * time.Millisecond, ThrottleBase: 2 * time.Second, Cap: 20 * time.Second,
		HintSlack: 5 * time.Second,
	},

	// AWS Elastic Disaster Recovery, whose control plane throttles hard.
	"drs": {Attempts: 6, Base: time.Second, Cap: time.Minute, Jitter: RangeJitter, Low: 0.5, High: 1.5},

	// The first attempt and 3 retries: after 1s, 2s and 4s, and up to 500ms more.
	"messaging": {Attempts: 4, Base: time.Second, Cap: 32 * time.Second, Jitter: AddedJitter, Added: 500 * time.Millisecond},

	// What an upstream is not: a process that finds too few tokens in a bucket of all asks it again 2s, 4s and 8s later
	// (weir.Policy.AskAgain).
	"not-enough-tokens": {Attempts: 4, Base: 2 * time.Second, Cap: 8 * time.Second, Jitter: NoJitter},

	// Language model providers: many short refusals, and callers who wait.
	"llm": {Attempts: 6, Base: 100 * time.Millisecond, Cap: 10 * time.Second, Jitter: DecorrelatedJitter},
}

// Schedule is the named Config, and false if there is none by that name.
func Schedule(name string) (Config, bool) {
	c, ok := schedules[name]
	return c, ok
}

// Schedules lists the names that Schedule knows, sorted.
func Schedules() []string { return slices.Sorted(maps.Keys(schedules)) }
