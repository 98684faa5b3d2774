package breaker

// A Phase is the phase of a breaker.
type Phase uint8

const (
	Closed   Phase = iota // calls are admitted; the zero State is closed
	Open                  // no call is admitted
	HalfOpen              // one call at a time is admitted, as a probe
)

func (p Phase) String() string { return name(phases[:], int(p)) }

var phases = [...]string{"closed", "open", "half-open"}

// A Cause is the reason for a breaker's phase.
type Cause uint8

const (
	Unset           Cause = iota // it has never changed
	TooManyFailures              // Config.Failures was reached
	FailuresInARow               // Config.Consecutive was reached
	FailureShare                 // Config.Share was reached
	ProbeFailed                  // the probe failed
	OpenTimeOver                 // time for a probe
	ProbesSucceeded              // Config.Successes was reached
	Forced                       // ForceOpen or ForceClose was called
	WasReset                     // Reset was called
	FleetTripped                 // the failures of the whole fleet, or another process of it, opened it
	FleetProbes                  // another process of the fleet probes
	FleetClosed                  // another process of the fleet found that the upstream works
	Hinted                       // the upstream requested a pause
	QuotaSpent                   // until the quota resets
)

func (c Cause) String() string { return name(causes[:], int(c)) }

var causes = [...]string{
	"unset", "too many failures", "failures in a row", "failure share", "probe failed",
	"open time over", "probes succeeded", "forced", "reset",
	"fleet tripped", "fleet probes", "fleet closed", "the upstream asked for it", "quota spent",
}

func name(of []string, i int) string {
	if i < len(of) {
		return of[i]
	}
	return "unknown"
}
