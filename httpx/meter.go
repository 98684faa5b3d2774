package httpx

import (
	"io"
	"sync/atomic"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// A Meter is the body of an answer that knows only at its end how it went and what
// was used, as streams do. If an answer has one, breaker and rates that learn hear of
// the attempt when its answer begins; the limits are settled when the body is closed.
type Meter interface {
	io.ReadCloser

	// Outcome says how the answer ended. It is asked once, after Close. One of class
	// failed or throttled counts against the upstream although the attempt has been
	// counted as a success already.
	Outcome() outcome.Outcome
}

// metered is a Meter with the permit that it settles.
type metered struct {
	Meter
	permit weir.Permit
	closed atomic.Bool
}

// meter leaves what the attempt holds to the body of the answer.
func meter(r *weir.Run, m Meter) io.ReadCloser {
	b := &metered{Meter: m}
	r.Detach(&b.permit)
	return b
}

func (b *metered) Close() error {
	err := b.Meter.Close()
	if !b.closed.Swap(true) {
		b.settle()
	}
	return err
}

func (b *metered) settle() {
	o := outcome.Outcome{Class: outcome.Canceled} // what a panic reports
	defer func() { b.permit.Report(o) }()
	o = b.Outcome()
}
