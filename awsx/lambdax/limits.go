package lambdax

import "time"

// A Kind is what a function is for. It says how long the function may take.
type Kind uint8

const (
	Other        Kind = iota // without a limit
	Processor                // handles a queue's messages: 5 minutes, which must be the queue's visibility timeout at most
	Scheduler                // is called by the clock: 30s
	API                      // answers API Gateway: 15s
	Notification             // tells people: 30s
	Authorizer               // says who may call: 10s
)

var kinds = [...]struct {
	name  string
	limit time.Duration
}{
	Other: {"other", 0}, Processor: {"processor", 5 * time.Minute}, Scheduler: {"scheduler", 30 * time.Second}, API: {"API", 15 * time.Second},
	Notification: {"notification", 30 * time.Second}, Authorizer: {"authorizer", 10 * time.Second},
}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return "other"
}

// Limit is how long a function of this kind may take; 0 if it has no limit.
func (k Kind) Limit() time.Duration {
	if int(k) < len(kinds) {
		return kinds[k].limit
	}
	return 0
}
