package learn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A changer writes limits into a file, and leaves the rest of the file unchanged.
type changer struct {
	name string
	env  func(string) (string, bool)
	rows []row
	file *config.File // parsed from the current rows
	says []string
}

// Change returns the changes of a file according to findings: a diff for patch, which is empty if there are no
// changes, and notes for the operator.
func Change(name string, text []byte, env func(string) (string, bool), all []Finding) (diff []byte, says []string, err error) {
	c := &changer{name: name, env: env, rows: rowsOf(text)}
	if c.file, err = config.Parse(name, text, env); err != nil {
		return nil, nil, err
	}
	for i := range all {
		for j := range all[i].Limits {
			c.limit(all[i].Upstream, &all[i].Limits[j])
		}
		if all[i].Flight > 0 {
			c.flight(all[i].Upstream, int(all[i].Flight))
		}
	}
	return unified(name, c.rows), c.says, nil
}

func (c *changer) say(upstream, format string, args ...any) {
	c.says = append(c.says, upstream+": "+fmt.Sprintf(format, args...))
}

func (c *changer) upstream(name string) *config.Upstream {
	for i := range c.file.Upstreams {
		if c.file.Upstreams[i].Name == name {
			return &c.file.Upstreams[i]
		}
	}
	return nil
}

// limit writes one limit.
func (c *changer) limit(upstream string, l *Limit) {
	u := c.upstream(upstream)
	switch {
	case u == nil:
		c.say(upstream, "the file has no such upstream; the limit would be %s", l.written("learned"))
		return
	case l.Scope != "" && u.Keys[l.Scope].Kind == "":
		c.say(upstream, "the file has no key %s; declare it in keys, and add limits: {%s}", l.Scope, l.written("learned"))
		return
	case l.Operation != "" && l.Operation != "default" && !slices.ContainsFunc(u.Policy.Operations, func(o weir.Operation) bool { return o.Name == l.Operation }):
		c.say(upstream, "the file has no operation %s; declare it in operations, and add limits: {%s}", l.Operation, l.written("learned"))
		return
	}
	name := l.fits(u)
	if name != "" {
		now := u.Policy.Limits[slices.IndexFunc(u.Policy.Limits, func(o limit.Limit) bool { return o.Name == name })]
		if l.near(&now) {
			c.say(upstream, "limits.%s is already %v", name, now.Rate)
			return
		}
	}
	there := func() bool {
		u := c.upstream(upstream)
		name := l.fits(u)
		i := slices.IndexFunc(u.Policy.Limits, func(o limit.Limit) bool { return o.Name == name })
		return i >= 0 && l.near(&u.Policy.Limits[i])
	}
	if err := c.try(func() error { return c.write(u, name, l) }, there); err != nil {
		c.say(upstream, "could not be written to the file (%v); add limits: {%s}", err, l.written(l.or(name)))
	}
}

// fits returns the name of the upstream's limit that counts the same calls. It returns "" if there is none.
func (l *Limit) fits(u *config.Upstream) string {
	for _, o := range u.Policy.Limits {
		of := ""
		if len(o.Operations) == 1 {
			of = o.Operations[0]
		}
		if o.UnitName() == l.Unit && o.Scope == l.Scope && len(o.Operations) <= 1 && of == l.Operation && o.Shape != limit.Calendar && o.If.Scope == "" {
			return o.Name
		}
	}
	return ""
}

// near reports whether a limit already has almost the learned value.
func (l *Limit) near(o *limit.Limit) bool {
	return math.Abs(o.PerSecond()-l.Rate.PerSecond()) <= 0.03*l.Rate.PerSecond() && (l.Rate.Burst == 0 || o.Full() <= l.Rate.Burst+l.Rate.Burst/4)
}

func (l *Limit) or(name string) string {
	if name == "" {
		return "learned"
	}
	return name
}

// written returns the limit as a field of a flow mapping.
func (l *Limit) written(name string) string {
	if l.Scope == "" && l.Operation == "" && l.Unit == limit.Requests {
		return name + ": " + l.Rate.String()
	}
	parts := []string{"rate: " + l.Rate.String()}
	if l.Unit != limit.Requests {
		parts = append(parts, "unit: "+l.Unit)
	}
	if l.Scope != "" {
		parts = append(parts, "scope: "+l.Scope)
	}
	if l.Operation != "" {
		parts = append(parts, "operations: "+l.Operation)
	}
	return name + ": {" + strings.Join(parts, ", ") + "}"
}

// try makes a change. It reverts the change if the file is then invalid, or lacks the intended setting.
func (c *changer) try(change func() error, there func() bool) error {
	rows, was := slices.Clone(c.rows), c.file
	err := change()
	if err == nil {
		var file *config.File
		if file, err = config.Parse(c.name, textOf(c.rows), c.env); err == nil {
			if c.file = file; there() {
				return nil
			}
			err = errForm
		}
	}
	c.rows, c.file = rows, was
	return err
}

var errForm = errors.New("it is written in an unsupported form")

// write changes the named limit, or adds one.
func (c *changer) write(u *config.Upstream, name string, l *Limit) error {
	at, err := c.tree(u.Name)
	if err != nil {
		return err
	}
	limits := field(at, "limits")
	one := field(limits, name)
	switch {
	case name != "" && one != nil && one.Kind == doc.Scalar:
		return c.replace(one, l.Rate.String())
	case name != "" && one != nil && one.Kind == doc.Mapping && field(one, "rate") != nil:
		return c.rate(one, l.Rate)
	case one != nil:
		return errForm
	}
	if name == "" {
		for name = "learned"; slices.ContainsFunc(u.Policy.Limits, func(o limit.Limit) bool { return o.Name == name }); {
			name += "_too"
		}
	}
	return c.add(at, limits, l.written(name))
}

// rate changes the rate and the burst of a limit in full form. It changes the later of two values in a line first, so
// that the other one does not move.
func (c *changer) rate(one *node, r bucket.Rate) error {
	rate, burst := field(one, "rate"), field(one, "burst")
	if burst == nil || r.Burst == 0 {
		return c.replace(rate, r.String())
	}
	size := fmt.Sprint(r.Burst)
	r.Burst = 0
	if rate.Column < burst.Column {
		return errors.Join(c.replace(burst, size), c.replace(rate, r.String()))
	}
	return errors.Join(c.replace(rate, r.String()), c.replace(burst, size))
}

// flight raises a concurrency limit that would restrict the rate.
func (c *changer) flight(upstream string, need int) {
	u := c.upstream(upstream)
	if u == nil || u.Policy.Concurrency.Limit == 0 || u.Policy.Concurrency.Limit >= need {
		return
	}
	err := c.try(func() error {
		at, err := c.tree(upstream)
		if err != nil {
			return err
		}
		n := field(at, "concurrency")
		if n != nil && n.Kind == doc.Mapping {
			n = field(n, "limit")
		}
		if n == nil {
			return errForm
		}
		return c.replace(n, fmt.Sprint(need))
	}, func() bool { return c.upstream(upstream).Policy.Concurrency.Limit == need })
	if err != nil {
		c.say(upstream, "concurrency: %d may be too low for that rate, which needs %d", u.Policy.Concurrency.Limit, need)
	}
}
