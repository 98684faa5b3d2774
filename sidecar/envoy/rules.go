package envoy

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
)

// Rules map descriptors to limits. They are immutable and safe for concurrent use. Load and Parse create them.
type Rules struct {
	domains map[string]*rule
	limits  int
}

// Domains returns the names of the domains, sorted.
func (r *Rules) Domains() []string { return slices.Sorted(maps.Keys(r.domains)) }

// Limits returns the number of limits.
func (r *Rules) Limits() int { return r.limits }

// A rule is a descriptor of the configuration, with its nested descriptors.
type rule struct {
	key, value string
	id         string // name of its counters, unique in the domain
	label      string // name in metrics and metadata
	limit      *quota // nil if it only contains other rules

	detailed, valueToMetric, share bool

	valued bool // its label, or the label of an enclosing rule, shows values of requests

	exact map[pair]*rule
	wild  []*rule // longest first
}

// A pair without a value matches the key with any value.
type pair struct{ key, value string }

// wildcard reports whether the rule's value contains an asterisk.
func (r *rule) wildcard() bool { return strings.Contains(r.value, "*") }

// fits reports whether a value matches a pattern, in which each asterisk matches any characters, including none.
func fits(pattern, value string) bool {
	begin, rest, _ := strings.Cut(pattern, "*")
	value, ok := strings.CutPrefix(value, begin)
	if !ok {
		return false
	}
	for {
		part, more, found := strings.Cut(rest, "*")
		if !found {
			return strings.HasSuffix(value, part)
		}
		i := strings.Index(value, part)
		if i < 0 {
			return false
		}
		value, rest = value[i+len(part):], more
	}
}

// next returns the most specific nested rule that matches an entry.
func (r *rule) next(key, value string) *rule {
	if n := r.exact[pair{key, value}]; n != nil {
		return n
	}
	for _, n := range r.wild {
		if n.key == key && fits(n.value, value) {
			return n
		}
	}
	return r.exact[pair{key: key}]
}

// A quota is a limit, from a rule or from a descriptor of a request.
type quota struct {
	name      string
	amount    uint32
	span      span
	unlimited bool
	replaces  []string

	shadow   bool // refuses no request
	soft     bool // quota_mode: refuses no request, but reports to the caller
	afterUse bool // refuses only checks; charges are for units that are already used

	store  fleet.Rule
	recent atomic.Pointer[limit.Windows]
}

// windows returns the current window and the next one. It caches the latest windows, because calendar windows take
// long to compute.
func (q *quota) windows(now time.Time) limit.Windows {
	if w := q.recent.Load(); w != nil && !now.Before(w.Start) && now.Before(w.End) {
		return *w
	}
	w := q.span.windows(now)
	q.recent.Store(&w)
	return w
}

// uncounted is the amount of limits that accept every charge. It is more than requests can use up, and within the
// range of a store.
const uncounted = 1 << 50

// open reports whether the limit accepts every charge.
func (q *quota) open() bool { return q.shadow || q.soft || q.afterUse }

// ready creates the rule for store calls.
func (q *quota) ready(id string) {
	q.store = fleet.Rule{Name: short(id + " " + q.span.String()), Shape: limit.Calendar, Amount: int64(q.amount)}
	if q.open() {
		q.store.Amount = uncounted
	}
}

// A match is the limit of a request's descriptor.
type match struct {
	*quota        // nil if there is none
	key    string // of its counter
	label  string
}

// match finds the limit of a descriptor: the rule must have as many levels as the descriptor has entries.
func (r *Rules) match(domain string, d *common.RateLimitDescriptor, v *veil.Veil) match {
	at := r.domains[domain]
	if at == nil {
		return match{}
	}
	if d.GetLimit() != nil {
		return override(domain, d, v)
	}
	var several [4]string
	key := name(several[:0])
	for _, e := range d.GetEntries() {
		if at = at.next(e.GetKey(), e.GetValue()); at == nil {
			return match{}
		}
		if at.value == "" || at.wildcard() && !at.share {
			key.add(escape(v.Key(e.GetKey(), e.GetValue())))
		}
	}
	if at.limit == nil {
		return match{}
	}
	label := at.label
	if at.valued || at.detailed {
		label = r.valued(domain, d, v, at.detailed)
	}
	return match{at.limit, short(key.text('&')), label}
}

// valued returns the label of a descriptor with values of the request: all that may be shown, or only those that the
// rules request.
func (r *Rules) valued(domain string, d *common.RateLimitDescriptor, v *veil.Veil, all bool) string {
	at, label := r.domains[domain], name{domain}
	for _, e := range d.GetEntries() {
		at = at.next(e.GetKey(), e.GetValue())
		label.add(at.shown(v.Key(e.GetKey(), e.GetValue()), all || at.valueToMetric))
	}
	return label.text('.')
}

// shown returns an entry for a label, with its own value or with the rule's value.
func (r *rule) shown(value string, had bool) string {
	if r.share || r.value != "" && !r.wildcard() || !had {
		value = r.value
	}
	if value == "" {
		return r.key
	}
	return r.key + "_" + value
}

// override returns the limit that a descriptor contains. It has separate counters, which continue if its amount
// changes.
func override(domain string, d *common.RateLimitDescriptor, v *veil.Veil) match {
	var key, label name
	label.add(domain)
	for _, e := range d.GetEntries() {
		r := rule{key: e.GetKey()}
		value := v.Key(e.GetKey(), e.GetValue())
		key.add(escape(e.GetKey()) + "=" + escape(value))
		label.add(r.shown(value, true))
	}
	o := d.GetLimit()
	q := &quota{amount: o.GetRequestsPerUnit(), span: span{unit(o.GetUnit()), 1, utc}}
	if n := o.GetUnitMultiplier().GetValue(); n > 0 {
		q.span.every = min(int64(n), maxEvery)
	}
	q.ready("override")
	return match{q, short(key.text('&')), label.text('.')}
}
