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

// Rules are what limits apply to which descriptors. They never change, so they may
// be shared; Load and Parse make them.
type Rules struct {
	domains map[string]*rule
	limits  int
}

// Domains are the names of the domains, sorted.
func (r *Rules) Domains() []string { return slices.Sorted(maps.Keys(r.domains)) }

// Limits is how many limits there are.
func (r *Rules) Limits() int { return r.limits }

// A rule is a descriptor of the configuration, with those that are nested in it.
type rule struct {
	key, value string
	id         string // names its counters: unlike that of any other rule of the domain
	label      string // names it in metrics and metadata
	limit      *quota // nil if it only holds others

	detailed, valueToMetric, share bool

	valued bool // its label, or that of a rule around it, shows values of requests

	exact map[pair]*rule
	wild  []*rule // the longest first
}

// A pair without a value stands for the key with any value.
type pair struct{ key, value string }

// wildcard reports whether there is an asterisk in the rule's value.
func (r *rule) wildcard() bool { return strings.Contains(r.value, "*") }

// fits reports whether a value matches a pattern, in which each asterisk stands for any characters, or for none.
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

// next is the most specific of the nested rules that an entry matches.
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

// A quota is a limit, of a rule or sent along with a descriptor.
type quota struct {
	name      string
	amount    uint32
	span      span
	unlimited bool
	replaces  []string

	shadow   bool // refuses nobody
	soft     bool // quota_mode: refuses nobody, and the caller is told
	afterUse bool // only a check is refused; what is charged has been used already

	store  fleet.Rule
	recent atomic.Pointer[limit.Windows]
}

// windows are the one that holds now and the one after. The latest are kept, as those of a calendar take long.
func (q *quota) windows(now time.Time) limit.Windows {
	if w := q.recent.Load(); w != nil && !now.Before(w.Start) && now.Before(w.End) {
		return *w
	}
	w := q.span.windows(now)
	q.recent.Store(&w)
	return w
}

// uncounted is the amount of limits that are charged whatever is left. It is more
// than anyone can use up, and what a store can count.
const uncounted = 1 << 50

// open reports whether the limit is charged whatever is left.
func (q *quota) open() bool { return q.shadow || q.soft || q.afterUse }

// ready makes the rule that goes with every ask.
func (q *quota) ready(id string) {
	q.store = fleet.Rule{Name: short(id + " " + q.span.String()), Shape: limit.Calendar, Amount: int64(q.amount)}
	if q.open() {
		q.store.Amount = uncounted
	}
}

// A match is the limit of a descriptor of a request.
type match struct {
	*quota        // nil if there is none
	key    string // of its counter
	label  string
}

// match finds the limit of a descriptor: that of the rule which has as many
// levels as the descriptor has entries.
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

// valued is the label of a descriptor with the values of the request: all that may be shown, or those that
// the rules ask for.
func (r *Rules) valued(domain string, d *common.RateLimitDescriptor, v *veil.Veil, all bool) string {
	at, label := r.domains[domain], name{domain}
	for _, e := range d.GetEntries() {
		at = at.next(e.GetKey(), e.GetValue())
		label.add(at.shown(v.Key(e.GetKey(), e.GetValue()), all || at.valueToMetric))
	}
	return label.text('.')
}

// shown is how an entry stands in a label, with the value that it had or with that
// of the rule.
func (r *rule) shown(value string, had bool) string {
	if r.share || r.value != "" && !r.wildcard() || !had {
		value = r.value
	}
	if value == "" {
		return r.key
	}
	return r.key + "_" + value
}

// override is the limit that came with a descriptor. It has counters of its own,
// which go on when its amount changes.
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
