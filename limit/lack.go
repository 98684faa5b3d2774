package limit

import (
	"fmt"
	"time"
)

// A Lack is why a call was refused of a limit that a fleet shares, where it was not for what the
// store said of the limit.
type Lack uint8

const (
	LacksNothing  Lack = iota
	LacksStore         // the process holds no part of the limit, or must not use one, or has no room for the key
	LacksPart          // its part never holds what the call costs
	LacksQuota         // what stood by of the quota is used up
	LacksTurn          // of its part there is not enough yet
	LacksMemory        // the store does not know what was used, and counts all as used up
	LacksReserved      // the store reserves much of the limit for a process that stopped responding
)

var lackWords = [...]string{"", "no_part", "part_too_small", "standby_spent", "part_spent", "cold", "reserved"}

// Word is for logs and answers: cold, no_part, part_too_small, part_spent, reserved or standby_spent. It is
// empty for LacksNothing.
func (l Lack) Word() string { return lackWords[min(int(l), len(lackWords)-1)] }

// A Want is what a call wanted in vain of a limit that a fleet shares, for which it had to do with
// the store's state.
type Want struct {
	Lack  Lack
	State State
	Part  float64       // of the limit, which this process uses without the store; of LacksReserved, what is reserved
	Wait  time.Duration // until it is worth asking again, as far as that is known
	Keys  bool          // there are too many keys for which the process has no room; see Limit.MaxKeys
}

// Away reports whether it was because the store does not answer, or too late, or was not asked.
func (w Want) Away() bool {
	return w.Lack != LacksNothing && w.Lack != LacksMemory && w.Lack != LacksReserved
}

var storeIs = [...]string{
	StateNew:    "the store has not been reached since the start",
	StateHeard:  "the store does not answer",
	StateCutOff: "the store does not answer",
	StateSlow:   "the store answers too slowly",
	StateOut:    "the store has not answered for longer than outage",
}

// String says what a person has to know of it.
func (w Want) String() string {
	if w.Keys && w.Lack == LacksStore {
		return "too many keys are in use: this process has no room for more, and too many requests for other keys are in flight to the store"
	}
	is := storeIs[min(int(w.State), len(storeIs)-1)]
	switch w.Lack {
	case LacksNothing:
		return ""
	case LacksMemory:
		return "the store is cold: it is new or was emptied, has no record of the usage of the limit, and counts it as used up; if it was not used, run weir store init"
	case LacksReserved:
		return fmt.Sprintf("%.3g%% of the limit is reserved for a process that stopped responding, until it responds or outage has passed", 100*w.Part)
	case LacksPart:
		return fmt.Sprintf("%s, and the call costs more than this process's part of the limit (%.3g%%) can hold: it has to wait for the store", is, 100*w.Part)
	case LacksQuota:
		return is + ", and this process has used up its part of the quota"
	case LacksTurn:
		return fmt.Sprintf("%s, and this process's part of the limit (%.3g%%) has not enough units yet", is, 100*w.Part)
	}
	return is + ", and this process has no part of the limit"
}

// A State is how a process stands to its store in one group.
type State uint8

const (
	StateNew    State = iota // the store has never answered
	StateHeard               // it answers
	StateCutOff              // it has not for a while: the process uses its part
	StateSlow                // it answers too late for what it grants to be used: the process uses its part
	StateOut                 // it has not for longer than fleet.Options.Outage
)

// States lists every state, for tables and metrics.
var States = [...]State{StateNew, StateHeard, StateCutOff, StateSlow, StateOut}

var states = [...]string{"new", "heard", "cut_off", "slow", "out"}

// String is for logs and metrics: new, heard, cut_off, slow, out.
func (s State) String() string { return states[min(int(s), len(states)-1)] }
