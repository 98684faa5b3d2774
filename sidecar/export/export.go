// Package export writes the limits of a configuration as other programs want them: the
// rules by which an Envoy asks weir, or the settings of an API Gateway.
//
// What the other program cannot hold is an error that names the limit and where it
// stands; what it holds in another way is a warning. Nothing is left out in silence.
package export

import (
	"fmt"
	"slices"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A File is what was written, and what it does in another way than weir does.
type File struct {
	Text     []byte
	Warnings []string
}

// A ledger is what is found while limits are read. target is whom they are written for.
type ledger struct {
	target   string
	file     *config.File
	errs     doc.Errors
	warnings []string
}

// at is where a field of an upstream stands.
func (l *ledger) at(u *config.Upstream, field string) string {
	at := "upstreams." + u.Name + "." + field
	if where := l.file.Where(u.Name, field); where != "" {
		return where + ": " + at
	}
	return at
}

// bad notes what cannot be written. what is what the target has not.
func (l *ledger) bad(u *config.Upstream, field, what, hint string) {
	l.errs = append(l.errs, doc.Complaint{File: l.file.Where(u.Name, field), Field: "upstreams." + u.Name + "." + field, Problem: l.target + " has no " + what, Hint: hint})
}

func (l *ledger) warn(u *config.Upstream, field, format string, args ...any) {
	l.warnings = append(l.warnings, l.at(u, field)+": "+fmt.Sprintf(format, args...))
}

// err is all that was noted.
func (l *ledger) err() error {
	if len(l.errs) == 0 {
		return nil
	}
	return l.errs
}

// chosen are the upstreams of the names given, or all of them.
func (l *ledger) chosen(names []string) (all []*config.Upstream, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(l.file.Upstreams, func(u config.Upstream) bool { return u.Name == name }) {
			return nil, fmt.Errorf("there is no upstream %q", name)
		}
	}
	for i := range l.file.Upstreams {
		if u := &l.file.Upstreams[i]; len(names) == 0 || slices.Contains(names, u.Name) {
			all = append(all, u)
		}
	}
	return all, nil
}

// bounds complains of what bounds an upstream besides its limits: neither target has it. The bound that weir learns
// where the file says nothing of it is weir's own care.
func (l *ledger) bounds(u *config.Upstream) {
	own := func(c *weir.Concurrency) bool { return c != nil && (c.Auto || c.Limit > 0) }
	if own(&u.Policy.Concurrency) && l.file.Where(u.Name, "concurrency") != "" {
		l.bad(u, "concurrency", "bound of what is in flight", "")
	}
	for _, o := range u.Policy.Operations {
		if own(o.Concurrency) {
			l.bad(u, "operations."+o.Name, "bound of what is in flight", "")
		}
	}
	if _, ok := l.file.Jobs[u.Name]; ok {
		l.bad(u, "jobs", "bound of running jobs", "")
	}
	if l.file.LLM[u.Name].Callers {
		l.bad(u, "llm", "limits of callers over all models", "")
	}
}

// counts complains of a limit that counts what the targets do not, or by what they do not know.
func (l *ledger) counts(u *config.Upstream, one *limit.Limit) (good bool) {
	before, field := len(l.errs), "limits."+one.Name
	if unit := one.UnitName(); unit != limit.Requests {
		l.bad(u, field, "limit by "+unit, "it counts requests")
	}
	if one.Shape == limit.Rolling {
		l.bad(u, field, "rolling windows", "")
	}
	if one.Adaptive.On {
		l.bad(u, field, "rates that learn", "write adaptive: off to export the configured rate")
	}
	if one.Advertised != "" {
		l.bad(u, field, "rates that the upstream advertises", "")
	}
	if one.If.Scope != "" || one.Of != "" {
		l.bad(u, field, "plans by a key", "")
	}
	return len(l.errs) == before
}
