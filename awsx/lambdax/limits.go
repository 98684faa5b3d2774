package lambdax

import (
	"errors"
	"fmt"
	"time"
)

// A Kind is the purpose of a function. It determines the function's maximum duration.
type Kind uint8

const (
	Other        Kind = iota // no limit
	Processor                // handles messages of a queue: 5 minutes, and at most the queue's visibility timeout
	Scheduler                // is called on a schedule: 30s
	API                      // answers API Gateway: 15s
	Notification             // notifies people: 30s
	Authorizer               // authorizes callers: 10s
)

var kinds = [...]struct {
	name  string
	limit time.Duration
}{
	Other: {"other", 15 * time.Minute}, Processor: {"processor", 5 * time.Minute}, Scheduler: {"scheduler", 30 * time.Second},
	API: {"API", 15 * time.Second}, Notification: {"notification", 30 * time.Second}, Authorizer: {"authorizer", 10 * time.Second},
}

func (k Kind) String() string { return kinds[k.known()].name }

// Limit returns the maximum duration of a function of this kind. That of Other is Lambda's own, 15 minutes.
func (k Kind) Limit() time.Duration { return kinds[k.known()].limit }

func (k Kind) known() Kind {
	if int(k) < len(kinds) {
		return k
	}
	return Other
}

// Check returns an error with a remedy if a function's timeout is too long.
func (k Kind) Check(timeout time.Duration) error {
	if timeout > k.Limit() {
		return fmt.Errorf("timeout %v: a function of kind %v may take %v; set its Timeout to %d or less", timeout, k, k.Limit(), int(k.Limit().Seconds()))
	}
	return nil
}

// A Mapping connects a queue to a function.
type Mapping struct {
	Queue      string        // ARN
	Visibility time.Duration // visibility timeout of its messages
	Reports    bool          // FunctionResponseTypes includes ReportBatchItemFailures
}

// Check returns the errors in a mapping to a function with this timeout, with remedies.
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
