package cascade

import "fmt"

// A Phase is how a tier is doing.
type Phase uint8

const (
	Up      Phase = iota // every call may ask it
	Cooling              // no call may
	Probing              // one call is asking it, to see whether it is up again
	Ramping              // a part of the calls may ask it
)

var phases = [...]string{"up", "cooling", "probing", "ramping"}

func (p Phase) String() string {
	if int(p) < len(phases) {
		return phases[p]
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// MarshalText lets a phase stand in files and on pages by its name.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// A Cause is why a tier changed its phase.
type Cause string

const (
	FailuresInARow Cause = "failures in a row"
	Hinted         Cause = "the upstream asked for it"
	QuotaUsedUp    Cause = "quota used up"
	CircuitOpen    Cause = "circuit open" // of the tier's own breaker
	ProbeFailed    Cause = "probe failed"
	RampFailed     Cause = "failed while ramping"
	CooledDown     Cause = "cooled down"
	ProbeSucceeded Cause = "probe succeeded"
	StepDone       Cause = "step done"
	ByHand         Cause = "by hand"
)
