package weir

import (
	"io"
	"sync/atomic"

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
	permit Permit
	closed atomic.Bool
}

// meter leaves what the attempt's permit holds to the body of the answer.
func (r *run) meter(m Meter) io.ReadCloser {
	b := &metered{Meter: m, permit: r.permit}
	b.permit.told = true // by r.permit
	r.permit.metered = true
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
	defer func() { b.permit.settled(o) }()
	o = b.Outcome()
}

// settled ends a permit whose attempt has been reported: what is left of it are the
// limits and the gates of the program's own.
func (p *Permit) settled(o outcome.Outcome) {
	u := p.u
	now := u.clock.Now()
	if u.options.Events.Metered != nil {
		tell(u.options.Events.Metered, Ended{Subject: p.subject(), Attempt: int(p.attempt), Outcome: o, Took: now - p.sent})
	}
	p.u = nil
	if o.Class == outcome.Failed || o.Class == outcome.Throttled {
		p.breaker.Report(now, p.ticket, o)
		p.learn(u, now, &o)
	}
	p.settle(u, now, &o)
	for _, report := range p.reports {
		report(o)
	}
}
