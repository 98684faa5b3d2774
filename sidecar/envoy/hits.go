package envoy

import (
	"math"
	"slices"
	"sync"

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

// A plan is what a request asks for. Plans are used again.
type plan struct {
	domain   string
	home     string    // the group of its counters
	places   []place   // one for each descriptor
	counters []counter // never more than places
	verdicts []verdict // one for each place, once the store has answered
	ask      fleet.Ask

	charges, returns, checks, closed bool // what there is among the counters
	refused                          bool
}

var plans = sync.Pool{New: func() any { return new(plan) }}

// plan says what a request asks for. Whoever is done with it, and with what the store was asked, frees it.
func (r *Rules) plan(req *rls.RateLimitRequest, v *veil.Veil) *plan {
	p, n := plans.Get().(*plan), len(req.GetDescriptors())
	p.domain = req.GetDomain()
	p.places, p.counters = slices.Grow(p.places, n), slices.Grow(p.counters, n) // places point to counters
	for _, d := range req.GetDescriptors() {
		p.places = append(p.places, place{match: r.match(p.domain, d, v), hits: hits(req, d)})
	}
	p.replace()
	for i := range p.places {
		if at := &p.places[i]; at.quota != nil && !at.unlimited {
			p.count(at)
		}
	}
	for i := range p.counters {
		c := &p.counters[i]
		p.checks = p.checks || c.check
		p.charges = p.charges || c.hits > 0
		p.returns = p.returns || c.hits < 0
		p.closed = p.closed || c.closed() && (c.hits > 0 || c.check)
	}
	return p
}

// few is how many descriptors a plan may have that is kept for another request.
const few = 32

// free gives the plan to another request.
func (p *plan) free() {
	if cap(p.places) > few {
		return
	}
	clear(p.places)
	clear(p.counters)
	clear(p.ask.Claims[:cap(p.ask.Claims)])
	clear(p.ask.Settle[:cap(p.ask.Settle)])
	*p = plan{places: p.places[:0], counters: p.counters[:0], verdicts: p.verdicts[:0],
		ask: fleet.Ask{Claims: p.ask.Claims[:0], Settle: p.ask.Settle[:0], Grants: p.ask.Grants[:0]}}
	plans.Put(p)
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
	for i := range p.counters {
		if c := &p.counters[i]; c.store.Name == at.store.Name && c.key == at.key {
			return c
		}
	}
	p.counters = append(p.counters, counter{quota: at.quota, key: at.key})
	return &p.counters[len(p.counters)-1]
}
