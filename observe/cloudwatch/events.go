package weircw

import (
	"errors"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// Events returns the events to pass to an upstream, so that its calls are counted. An event costs a look-up and an atomic
// operation, and allocates nothing once its series exists.
func (e *Exporter) Events() weir.Events {
	return weir.Events{Decided: e.decided, Acquired: e.acquired, Ended: e.ended, GaveUp: e.gaveUp, Violated: e.violated}
}

// Fleet returns the events to pass to fleet.New, to measure the latency and the outages of its store. Combine several with
// fleet.TeeFleet.
func (e *Exporter) Fleet() fleet.Events {
	return fleet.Events{Called: e.storeCalled, Fallback: func(f fleet.FallbackEvent) {
		if e.away.Store(f.Away); f.Away && f.For == 0 {
			e.activated.Add(1)
		}
	}}
}

// storeCalled measures requests for units. It ignores calls that only return units, and calls without a response, which have no
// latency.
func (e *Exporter) storeCalled(c fleet.StoreCall) {
	if c.Calls == 0 || c.Err != nil && !errors.Is(c.Err, fleet.ErrWindow) {
		return
	}
	if l := e.leaf(key{kind: asked}, &weir.Subject{Upstream: c.Group}); l != nil {
		l.waits.observe(c.Took)
	}
}

// Requests counts the requests of one store call, for stores that may need several.
type Requests struct {
	Sent      int // including the first
	Failed    int // conditional writes that conflicted with another write
	Throttled int // refused by the store because of their rate
	Retried   int // after throttles, server errors and broken connections
}

// Requested counts the requests of a store call, for limits of the upstream.
func (e *Exporter) Requested(upstream string, r Requests) {
	s := weir.Subject{Upstream: upstream}
	for i, n := range [...]int{r.Sent, r.Failed, r.Throttled, r.Retried} {
		if n > 0 {
			e.countN(key{kind: requested + kind(i)}, &s, int64(n))
		}
	}
}

// JobFailedOpen counts a job that was started although its upstream's state could not be read.
func (e *Exporter) JobFailedOpen(upstream string) {
	e.count(key{kind: failedOpen}, &weir.Subject{Upstream: upstream})
}

func (e *Exporter) decided(d weir.Decided) {
	k := key{kind: allowed}
	if d.Refusal != nil {
		k.kind, k.word = refused, observe.Reason(d.Refusal.Reason)
		if name := d.Refusal.Limit; name != "" {
			e.count(key{kind: limited, word: name}, &d.Subject)
		}
	}
	l := e.leaf(k, &d.Subject)
	switch {
	case l == nil:
	case l.waits != nil:
		l.waits.observe(d.Waited)
	default:
		l.n.Add(1)
	}
}

// Refused counts a refusal that did not come from an upstream, for instance of a connection beyond a bound.
func (e *Exporter) Refused(s weir.Subject, why weir.Reason) {
	e.count(key{kind: refused, word: observe.Reason(why)}, &s)
}

func (e *Exporter) acquired(a weir.Acquired) {
	e.countN(key{kind: acquired, word: a.Limit}, &a.Subject, a.Units)
}

func (e *Exporter) violated(v weir.Violation) {
	o := outcome.Outcome{Class: outcome.Throttled, Code: v.Code}
	e.count(key{kind: violated, word: errorType(&o)}, &v.Subject)
}

func (e *Exporter) ended(d weir.Ended) {
	class := d.Outcome.Class
	k := key{kind: called, attempt: attempt(d.Attempt), success: class == outcome.OK, word: errorType(&d.Outcome)}
	e.count(k, &d.Subject)
	if l := e.leaf(key{kind: timed}, &d.Subject); l != nil {
		l.waits.observe(d.Took)
	}
	if d.Attempt > 1 {
		k.kind = retried
		e.count(k, &d.Subject)
	}
	if class == outcome.Throttled {
		k.kind = throttled
		e.count(k, &d.Subject)
	}
}

func (e *Exporter) gaveUp(d weir.GaveUp) {
	why := observe.Why(d.Why)
	if why == "canceled" || why == "not_retryable" { // the caller left, or the last error is not retryable: the retries are not exhausted
		return
	}
	e.count(key{kind: exhausted, word: why}, &d.Subject)
}

func (e *Exporter) count(k key, s *weir.Subject) { e.countN(k, s, 1) }

func (e *Exporter) countN(k key, s *weir.Subject, n int64) {
	if l := e.leaf(k, s); l != nil {
		l.n.Add(n)
	}
}

// leaf returns the leaf that counts an event, nil if it is not counted.
func (e *Exporter) leaf(k key, s *weir.Subject) *leaf {
	u := &e.uses[k.kind]
	if !u.any || e.ignored[s.Upstream] {
		return nil
	}
	k.upstream = s.Upstream
	if u.operation {
		k.operation = s.Operation
	}
	if s.Key != "" {
		if u.region {
			k.region = observe.Region(s.Key)
		}
		if u.account {
			k.account = observe.Account(s.Key)
		}
	}
	u.forget(&k)
	return e.book.get(k)
}

type uses struct{ any, operation, region, account, word, attempt, success bool }

func (u *uses) forget(k *key) {
	if !u.word {
		k.word = ""
	}
	if !u.attempt {
		k.attempt = 0
	}
	if !u.success {
		k.success = false
	}
}

// usesOf returns the parts that the metrics of a kind use.
func (c *Config) usesOf(k kind) (u uses) {
	for _, m := range metrics[k] {
		n := c.Metrics[m]
		u.any = u.any || !n.Off
		for _, set := range n.Sets {
			for _, d := range set {
				u.operation = u.operation || d == Operation
				u.region = u.region || d == Region
				u.account = u.account || d == Account
				u.word = u.word || d == ErrorCode || d == ErrorType || d == Reason || d == Limit || d == Tier
				u.attempt = u.attempt || d == Attempt
				u.success = u.success || d == Success
			}
		}
	}
	return u
}

func attempt(n int) uint8 { return uint8(max(0, min(n, 10))) }

// errorType returns a value that the upstream cannot choose freely. Other codes could contain anything, such as a secret from the
// request.
func errorType(o *outcome.Outcome) string {
	if o.Class == outcome.OK {
		return none
	}
	if len(o.Code) == 3 && digits(o.Code) {
		return o.Code
	}
	if _, ok := classify.AWSCode(o.Code); ok && plain(o.Code) {
		return o.Code
	}
	return o.Class.String()
}

// plain reports whether an error code has neither a namespace before it nor text after it.
func plain(code string) bool { return !strings.ContainsAny(code, "#: ") }

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
