package lambdax

import (
	"errors"
	"fmt"
	"time"
)

// A Kind is what a function is for. It says how long the function may take.
type Kind uint8

const (
	Other        Kind = iota // without a limit
	Processor                // handles a queue's messages: 5 minutes, and the queue's visibility timeout at most
	Scheduler                // is called by the clock: 30s
	API                      // answers API Gateway: 15s
	Notification             // tells people: 30s
	Authorizer               // says who may call: 10s
)

var kinds = [...]struct {
	name  string
	limit time.Duration
}{
	Other: {"other", 15 * time.Minute}, Processor: {"processor", 5 * time.Minute}, Scheduler: {"scheduler", 30 * time.Second},
	API: {"API", 15 * time.Second}, Notification: {"notification", 30 * time.Second}, Authorizer: {"authorizer", 10 * time.Second},
}

func (k Kind) String() string { return kinds[k.known()].name }

// Limit is how long a function of this kind may take; that of Other is Lambda's own, 15 minutes.
func (k Kind) Limit() time.Duration { return kinds[k.known()].limit }

func (k Kind) known() Kind {
	if int(k) < len(kinds) {
		return k
	}
	return Other
}

// Check says what is wrong with a function's timeout, and what to do.
func (k Kind) Check(timeout time.Duration) error {
	if timeout > k.Limit() {
		return fmt.Errorf("timeout %v: a function of kind %v may take %v; set its Timeout to %d or less", timeout, k, k.Limit(), int(k.Limit().Seconds()))
	}
	return nil
}

// A Mapping is how a queue comes to a function.
type Mapping struct {
	Queue      string        // its ARN
	Visibility time.Duration // how long its messages are invisible
	Reports    bool          // FunctionResponseTypes has ReportBatchItemFailures
}

// Check says what is wrong with a mapping to a function with this timeout, and what to do.
func (m *Mapping) Check(timeout time.Duration) error {
	var errs []error
	if m.Visibility < timeout {
		errs = append(errs, fmt.Errorf("queue %s: its visibility timeout is %v, but the function may take %v: messages would be received again while they are handled; set VisibilityTimeout to at least %d (AWS recommends %d)",
			m.Queue, m.Visibility, timeout, int(timeout.Seconds()), 6*int(timeout.Seconds())))
	}
	if !m.Reports {
		errs = append(errs, fmt.Errorf("queue %s: its mapping has no ReportBatchItemFailures: messages that fail are deleted; add it to the mapping's FunctionResponseTypes", m.Queue))
	}
	return errors.Join(errs...)
}
