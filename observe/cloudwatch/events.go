package weircw

import (
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// Events is what to give to an upstream, so that its calls are counted. An event costs a
// look-up and an atomic operation, and allocates nothing once its series exists.
func (e *Exporter) Events() weir.Events {
	return weir.Events{Decided: e.decided, Ended: e.ended, Retried: e.retried, GaveUp: e.gaveUp}
}

// Fleet is what to give to fleet.New, so that it is seen when its store is away. Give
// several with limit.TeeFleet.
func (e *Exporter) Fleet() fleet.Events {
	return fleet.Events{Fallback: func(f fleet.FallbackEvent) {
		if e.away.Store(f.Away); f.Away && f.For == 0 {
			e.activated.Add(1)
		}
	}}
}

// StoreThrottled counts requests that the fleet's store refused for rate.
func (e *Exporter) StoreThrottled(n int) { e.throttles.Add(int64(n)) }

// JobFailedOpen counts a job that was let start although its upstream could not be asked for others.
func (e *Exporter) JobFailedOpen(upstream string) {
	e.count(key{kind: failedOpen}, &weir.Subject{Upstream: upstream})
}

func (e *Exporter) decided(d weir.Decided) {
	k := key{kind: acquired}
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

func (e *Exporter) ended(d weir.Ended) {
	class := d.Outcome.Class
	k := key{kind: called, attempt: attempt(d.Attempt), success: class == outcome.OK, word: errorType(&d.Outcome)}
	e.count(k, &d.Subject)
	if l := e.leaf(key{kind: timed}, &d.Subject); l != nil {
		l.waits.observe(d.Took)
	}
	if class == outcome.Throttled {
		k.kind = throttled
		e.count(k, &d.Subject)
	}
}

func (e *Exporter) retried(d weir.Retried) {
	e.count(key{kind: retried, attempt: attempt(d.Attempt), word: errorType(&d.Outcome)}, &d.Subject)
}

func (e *Exporter) gaveUp(d weir.GaveUp) {
	why := observe.Why(d.Why)
	if why == "canceled" { // the caller left; nothing is exhausted
		return
	}
	e.count(key{kind: exhausted, word: why}, &d.Subject)
}

func (e *Exporter) count(k key, s *weir.Subject) {
	if l := e.leaf(k, s); l != nil {
		l.n.Add(1)
	}
}

// leaf is where an event is counted; nil if it is not.
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

// uses says which parts of a key some dimension asks for.
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

// usesOf is what the metrics of a kind ask for.
func (c *Config) usesOf(k kind) (u uses) {
	for _, m := range metrics[k] {
		n := c.Metrics[m]
		u.any = u.any || !n.Off
		for _, set := range n.Sets {
			for _, d := range set {
				u.operation = u.operation || d == Operation
				u.region = u.region || d == Region
				u.account = u.account || d == Account
				u.word = u.word || d == ErrorType || d == Reason || d == Limit
				u.attempt = u.attempt || d == Attempt
				u.success = u.success || d == Success
			}
		}
	}
	return u
}

func attempt(n int) uint8 { return uint8(max(0, min(n, 10))) }

// errorType is a word that the upstream cannot choose freely: what it says may be anything,
// a secret that it was sent too.
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

// plain reports whether an error code has no namespace before it and no tail behind.
func plain(code string) bool { return !strings.ContainsAny(code, "#: ") }

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
