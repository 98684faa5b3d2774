package config

import (
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir"
)

var concurrencyFields = []field[weir.Concurrency]{
	{"limit", "auto, or a number", "auto", "", readInFlight},
	one("min", count[int](1), func(c *weir.Concurrency) *int { return &c.Min }, "1", ""),
	one("max", count[int](1), func(c *weir.Concurrency) *int { return &c.Max }, "100000", ""),
}

// inFlight reads a number, or auto, which is 0.
var inFlight = text("auto, or a whole number from 1", func(s string) (int, string, string) {
	if strings.EqualFold(s, "auto") {
		return 0, "", ""
	}
	v, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return 0, "want auto, off or a number", ""
	case v < 1:
		return 0, "must be at least 1", "write off for no bound"
	case v > weir.MostInFlight:
		return 0, "is too large", ""
	}
	return v, "", ""
})

func readInFlight(d *decoder, n *node, c *weir.Concurrency) {
	if v, ok := inFlight.read(d, n); ok {
		c.Auto, c.Limit = v == 0, v
	}
}

func (d *decoder) concurrency(n *node) weir.Concurrency {
	if isOff(n) {
		return weir.Concurrency{}
	}
	c := weir.Concurrency{Auto: true}
	good := object(d, n, concurrencyFields, &c)
	for _, name := range []string{"min", "max"} {
		if at := n.Get(name); good && c.Limit > 0 && at != nil {
			d.Bad(at, "leave it out, or write limit: auto", "%s applies only to a learned bound, but limit is a number", name)
			return weir.Concurrency{Limit: c.Limit}
		}
	}
	return c
}

func readConcurrency(d *decoder, n *node, u *site) { u.Policy.Concurrency = d.concurrency(n) }

func readOwnConcurrency(d *decoder, n *node, o *class) {
	c := d.concurrency(n)
	o.Concurrency = &c
}

// boundByDefault limits requests in flight where the file does not mention concurrency. It skips language models,
// whose calls are canceled when their callers disconnect and whose tiers would wait for each other. It also does
// nothing if other programs request decisions, because many never report how a call ended.
func (f *document) boundByDefault() {
	for i := range f.Upstreams {
		if f.learns[i] && f.Decide == nil {
			f.Upstreams[i].Policy.Concurrency = weir.Concurrency{Auto: true}
		}
	}
}
