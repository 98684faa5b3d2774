package limit

import (
	"fmt"
	"time"
)

// A Lack is the reason why a shared limit refused a call, if that was due to the state of the store.
type Lack uint8

const (
	LacksNothing  Lack = iota
	LacksStore         // the process has no part of the limit, must not use it, or has no room for the key
	LacksPart          // its part can never hold the cost of the call
	LacksQuota         // its part of the quota is used up
	LacksTurn          // its part has too few units at present
	LacksMemory        // the store does not know the usage and assumes that all is used up
	LacksReserved      // the store reserves much of the limit for a process that stopped responding, or did until just now
)

var lackWords = [...]string{"", "no_part", "part_too_small", "standby_spent", "part_spent", "cold", "reserved"}

// Word returns the name for logs and responses: cold, no_part, part_too_small, part_spent, reserved or standby_spent.
// It is empty for LacksNothing.
func (l Lack) Word() string { return lackWords[min(int(l), len(lackWords)-1)] }

// A Want describes why a shared limit could not grant a call's units, if the state of the store is the reason.
type Want struct {
	Lack  Lack
	State State
	Part  float64       // part of the limit that this process uses without the store; for LacksReserved, the reserved part
	Wait  time.Duration // until it is worth asking again, if known
	Keys  bool          // there are too many keys; see Limit.MaxKeys
}

// Away reports whether the store does not respond, responds too late or was not asked.
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

// String explains it for people.
func (w Want) String() string {
	if w.Keys && w.Lack == LacksStore {
		return "too many keys are in use: this process has no room for more, and too many requests for other keys are in flight to the store"
	}
	is := storeIs[min(int(w.State), len(storeIs)-1)]
	switch w.Lack {
	case LacksNothing:
		return ""
	case LacksMemory:
		return "the store is cold: it is new or was emptied, has no record of the usage of the limit, and counts the limit as used up; if nothing was used, run weir store init"
	case LacksReserved:
		return fmt.Sprintf("%.3g%% of the limit is, or was a moment ago, reserved for processes that stopped responding, and the store counts it as used", 100*w.Part)
	case LacksPart:
		return fmt.Sprintf("%s, and the call costs more than this process's part of the limit (%.3g%%) can hold: it has to wait for the store", is, 100*w.Part)
	case LacksQuota:
		return is + ", and this process has used up its part of the quota"
	case LacksTurn:
		return fmt.Sprintf("%s, and this process's part of the limit (%.3g%%) does not have enough units yet", is, 100*w.Part)
	}
	return is + ", and this process has no part of the limit"
}

// A State is the state of the connection between a process and its store in one group.
type State uint8

const (
	StateNew    State = iota // the store has never responded
	StateHeard               // it responds
	StateCutOff              // it has not responded for a while: the process uses its part
	StateSlow                // it responds too late for its grants to be used: the process uses its part
	StateOut                 // it has not responded for longer than fleet.Options.Outage
)

// States lists every state, for tables and metrics.
var States = [...]State{StateNew, StateHeard, StateCutOff, StateSlow, StateOut}

var states = [...]string{"new", "heard", "cut_off", "slow", "out"}

// String returns the name for logs and metrics: new, heard, cut_off, slow, out.
func (s State) String() string { return states[min(int(s), len(states)-1)] }
