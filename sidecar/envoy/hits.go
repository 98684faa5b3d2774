package envoy

import (
	"math"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
)

// maxHits bounds what one descriptor charges or gives back. No limit is larger.
const maxHits = math.MaxUint32

// hits are what a descriptor charges: below 0 it gives back, 0 is a check.
func hits(r *rls.RateLimitRequest, d *common.RateLimitDescriptor) int64 {
	n := int64(max(r.GetHitsAddend(), 1))
	if own := d.GetHitsAddend(); own != nil {
		n = int64(min(own.GetValue(), maxHits))
	}
	if d.GetIsNegativeHits() {
		return -n
	}
	return n
}

// A counter is what a store counts for a limit and a key, with all that a request
// does to it.
type counter struct {
	*quota
	key   string
	hits  int64 // of all its places
	check bool  // one of them is a check

	excused bool // refuses nobody, and is not asked about any more

	windows limit.Windows // it was last asked about
	grant   fleet.Grant   // and what was answered
}

// closed reports whether the limit is 0 of everything; no store is asked.
func (c *counter) closed() bool { return c.amount == 0 && !c.open() }

// gone is how many units the window has spent, and left how many it has not. An
// open limit may have spent more than there are.
func (c *counter) gone() int64 {
	if c.closed() {
		return 0
	}
	return c.store.Amount - c.grant.Left
}

func (c *counter) left() int64 {
	if c.grant.Paused > 0 {
		return 0
	}
	return max(0, int64(c.amount)-c.gone())
}

// exhausted reports whether a check finds nothing left.
func (c *counter) exhausted() bool {
	return c.check && !c.shadow && !c.soft && c.left() == 0
}

// A place is a descriptor of a request, with its limit.
type place struct {
	match
	hits    int64
	before  int64    // hits of earlier places of the same counter
	counter *counter // nil if there is nothing to count
}

// A plan is what a request asks for.
type plan struct {
	domain   string
	places   []place // one for each descriptor
	counters []*counter

	charges, returns, checks, closed bool // what there is among the counters
	refused                          bool
}

func (r *Rules) plan(req *rls.RateLimitRequest, v *veil.Veil) *plan {
	p := &plan{domain: req.GetDomain(), places: make([]place, len(req.GetDescriptors()))}
	for i, d := range req.GetDescriptors() {
		p.places[i] = place{match: r.match(p.domain, d, v), hits: hits(req, d)}
	}
	p.replace()
	for i := range p.places {
		if at := &p.places[i]; at.quota != nil && !at.unlimited {
			p.count(at)
		}
	}
	for _, c := range p.counters {
		p.checks = p.checks || c.check
		p.charges = p.charges || c.hits > 0
		p.returns = p.returns || c.hits < 0
		p.closed = p.closed || c.closed() && (c.hits > 0 || c.check)
	}
	return p
}

// replace takes the limits away that others of the request replace.
func (p *plan) replace() {
	var replaced map[string]bool
	for i := range p.places {
		if q := p.places[i].quota; q != nil && len(q.replaces) > 0 {
			if replaced == nil {
				replaced = make(map[string]bool)
			}
			for _, name := range q.replaces {
				replaced[name] = true
			}
		}
	}
	for i := range p.places {
		if q := p.places[i].quota; q != nil && q.name != "" && replaced[q.name] {
			p.places[i].match = match{}
		}
	}
}

// count adds a place to its counter. Places with the same counter are charged
// together; should their limits differ, which an override can bring about, the
// smallest counts.
func (p *plan) count(at *place) {
	c := p.counter(at)
	if at.amount < c.amount {
		c.quota = at.quota
	}
	at.counter, at.before = c, c.hits
	c.hits += at.hits
	c.check = c.check || at.hits == 0
}

func (p *plan) counter(at *place) *counter {
	for _, c := range p.counters {
		if c.store.Name == at.store.Name && c.key == at.key {
			return c
		}
	}
	c := &counter{quota: at.quota, key: at.key}
	p.counters = append(p.counters, c)
	return c
}
