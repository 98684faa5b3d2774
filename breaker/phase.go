package breaker

// A Phase is what a breaker is doing.
type Phase uint8

const (
	Closed   Phase = iota // calls go through; the zero State is closed
	Open                  // no call goes through
	HalfOpen              // one call at a time goes through, as a probe
)

func (p Phase) String() string { return name(phases[:], int(p)) }

var phases = [...]string{"closed", "open", "half-open"}

// A Cause is why a breaker came to be in its phase.
type Cause uint8

const (
	Unset           Cause = iota // it has always been in it
	TooManyFailures              // Config.Failures was reached
	FailuresInARow               // Config.Consecutive was reached
	FailureShare                 // Config.Share was reached
	ProbeFailed                  // the upstream is still broken
	OpenTimeOver                 // time for a probe
	ProbesSucceeded              // Config.Successes was reached
	Forced                       // ForceOpen or ForceClose was called
	WasReset                     // Reset was called
	FleetTripped                 // the failures of the whole fleet, or another process of it, opened it
	FleetProbes                  // another process of the fleet probes
	FleetClosed                  // another process of the fleet found the upstream well
	Hinted                       // the upstream asked to be left alone
	QuotaSpent                   // until it resets
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
