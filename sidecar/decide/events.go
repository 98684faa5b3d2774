package decide

import (
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// Events are called when the state of a permit changes. A nil function is not called. Panics are ignored.
type Events struct {
	Acquired func(Acquired)
	Refused  func(Refused)
	Reported func(Reported)
	Expired  func(Expired)
}

// A Subject describes the permit of an event. All values come from the configuration, so they are usable as metric
// labels.
type Subject struct {
	Caller    string // name of the token or the certificate; "" if there is neither
	Upstream  string
	Operation string // "default" for an operation that the policy does not name
}

// Acquired means that a permit was issued.
type Acquired struct {
	Subject
	Waited time.Duration
}

// Refused means that a permit was refused.
type Refused struct {
	Subject
	Reason weir.Reason
	Limit  string // the limit that refused; "" if no limit did
}

// Reported means that the caller reported a permit.
type Reported struct {
	Subject
	Class outcome.Class
	Held  time.Duration
}

// Expired means that a permit ended without a report.
type Expired struct {
	Subject
	Held time.Duration
}

// tell calls an event function, if there is one, and recovers from its panic.
func tell[E any](f func(E), e E) {
	if f == nil {
		return
	}
	defer func() { _ = recover() }()
	f(e)
}
