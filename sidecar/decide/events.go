package decide

import (
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// Events hears what becomes of permits; a nil function is not called. One that
// panics is ignored.
type Events struct {
	Acquired func(Acquired)
	Refused  func(Refused)
	Reported func(Reported)
	Expired  func(Expired)
}

// A Subject says whose event it is. All of its values come from the
// configuration, so that metrics can be kept by them.
type Subject struct {
	Caller    string // name of the token or the certificate; "" if there are none
	Upstream  string
	Operation string // "default" for one that the policy does not name
}

// Acquired says that a permit was given.
type Acquired struct {
	Subject
	Waited time.Duration
}

// Refused says that none was.
type Refused struct {
	Subject
	Reason weir.Reason
	Limit  string // the limit that said no; "" if it was none
}

// Reported is the end of a permit that its holder told of.
type Reported struct {
	Subject
	Class outcome.Class
	Held  time.Duration
}

// Expired is the end of a permit of which nobody told.
type Expired struct {
	Subject
	Held time.Duration
}

// tell calls an event function, if there is one, and survives it.
func tell[E any](f func(E), e E) {
	if f == nil {
		return
	}
	defer func() { _ = recover() }()
	f(e)
}
