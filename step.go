package weir

import "time"

// A step is what the gates say of a call, and so what comes next on its way through them:
//
//	breaker -> pauses -> limits -> in flight -> gates of one's own
//
// Each may let it go on, have it wait, or refuse it. Who has waited asks again, since what the
// gates before had given may not be good any more. See Permit.ask and Permit.waits.
type step struct {
	kind kind
	wait time.Duration // of stepWait for how long; of stepRefuse until it is worth asking again
	why  Reason        // of stepRefuse
}

type kind uint8

const (
	stepRefuse kind = iota // nothing is held any more
	stepGo                 // everything is held that was asked for
	stepWait               // sleep, then ask again
	stepLine               // stand in line
	stepStore              // nothing here said no, but the store has to be asked
	stepMove               // other limits are in force: be charged by them, and ask them
)

// goOn is the step of a gate that has nothing against the call.
var goOn = step{kind: stepGo}

// no is the step that refuses a call, which need not ask again for so long.
func no(why Reason, wait time.Duration) step { return step{wait: wait, why: why} }

func (s step) refused() bool { return s.kind == stepRefuse }
