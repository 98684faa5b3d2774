package weir

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// An account is what an attempt is charged to, and what its limits said.
type account struct {
	by      *plan        // whose limits those are: that in force when it asked for them
	limits  limit.Permit // what it holds of them
	guessed bool         // what it costs is a guess
	why     int32        // the limit that made it wait or said no, or -1
	lack    limit.Lack
	told    bool          // the limits have heard what the upstream says of them
	held    time.Duration // until when everyone is paused that its answer concerns; 0: nobody
}

// starts tells the limits that the attempt is made.
func (a *account) starts() {
	if a.by.told {
		a.limits.Sent()
	}
}

// cause is the charge to the limit that made the attempt wait, or said no; the zero Charge if none did.
func (a *account) cause() limit.Charge {
	if a.why < 0 {
		return limit.Charge{}
	}
	return a.limits.Charge(int(a.why))
}

// wants is what the limit that said no wanted of the store.
func (a *account) wants(now time.Duration) limit.Want {
	w := a.limits.Lacks(now, int(a.why))
	if a.lack != limit.LacksNothing {
		w.Lack = a.lack
	}
	return w
}

// levels is what all limits look like that the call is charged to.
func (a *account) levels(now time.Duration) []LimitLevel {
	all := make([]LimitLevel, a.limits.Len())
	for i := range all {
		c := a.limits.Charge(i)
		level := a.limits.Look(now, i)
		all[i] = LimitLevel{Rule: c.Registry.Limit().InForce(level), Key: c.Key, Cost: c.Cost, Level: level}
	}
	return all
}
