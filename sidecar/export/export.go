// Package export writes the limits of a configuration for other programs: the rules with which an Envoy asks weir, or
// the settings of an API Gateway.
//
// A limit that the other program does not support is an error with the limit's name and place. A limit that it
// supports differently is a warning. No limit is omitted silently.
package export

import (
	"fmt"
	"slices"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A File is the exported text, and how its effect differs from weir's.
type File struct {
	Text     []byte
	Warnings []string
}

// A ledger collects the problems of an export. target is the program for which the limits are written.
type ledger struct {
	target   string
	file     *config.File
	errs     doc.Errors
	warnings []string
}

// at returns the place of an upstream's field.
func (l *ledger) at(u *config.Upstream, field string) string {
	at := "upstreams." + u.Name + "." + field
	if where := l.file.Where(u.Name, field); where != "" {
		return where + ": " + at
	}
	return at
}

// bad records a limit that cannot be written. what is the feature that the target does not have.
func (l *ledger) bad(u *config.Upstream, field, what, hint string) {
	l.errs = append(l.errs, doc.Complaint{File: l.file.Where(u.Name, field), Field: "upstreams." + u.Name + "." + field, Problem: l.target + " has no " + what, Hint: hint})
}

func (l *ledger) warn(u *config.Upstream, field, format string, args ...any) {
	l.warnings = append(l.warnings, l.at(u, field)+": "+fmt.Sprintf(format, args...))
}

// err returns all recorded errors.
func (l *ledger) err() error {
	if len(l.errs) == 0 {
		return nil
	}
	return l.errs
}

// chosen returns the named upstreams, or all of them.
func (l *ledger) chosen(names []string) (all []*config.Upstream, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(l.file.Upstreams, func(u config.Upstream) bool { return u.Name == name }) {
			return nil, fmt.Errorf("the file has no upstream %q", name)
		}
	}
	for i := range l.file.Upstreams {
		if u := &l.file.Upstreams[i]; len(names) == 0 || slices.Contains(names, u.Name) {
			all = append(all, u)
		}
	}
	return all, nil
}

// bounds reports an upstream's configured concurrency bounds, which neither target has. A bound that weir learns by
// default is not reported.
func (l *ledger) bounds(u *config.Upstream) {
	own := func(c *weir.Concurrency) bool { return c != nil && (c.Auto || c.Limit > 0) }
	if own(&u.Policy.Concurrency) && l.file.Where(u.Name, "concurrency") != "" {
		l.bad(u, "concurrency", "bound on calls in flight", "")
	}
	for _, o := range u.Policy.Operations {
		if own(o.Concurrency) {
			l.bad(u, "operations."+o.Name, "bound on calls in flight", "")
		}
	}
	if _, ok := l.file.Jobs[u.Name]; ok {
		l.bad(u, "jobs", "bound on running jobs", "")
	}
	if l.file.LLM[u.Name].Callers {
		l.bad(u, "llm", "limits of callers over all models", "")
	}
}

// counts reports a limit with a unit, a shape or a scope that the targets do not support.
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
