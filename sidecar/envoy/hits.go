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

// maxHits is the most that one descriptor charges or returns. No limit is larger.
const maxHits = math.MaxUint32

// hits returns the charge of a descriptor. A negative value returns hits, and 0 is a check.
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

// A counter is what a store counts for a limit and a key, with all changes by one request.
type counter struct {
	*quota
	key   string
	hits  int64 // of all its places
	check bool  // one of them is a check

	excused bool // cannot refuse the request, and is left out of further store calls

	windows limit.Windows // of the last store call
	grant   fleet.Grant   // its result
}

// closed reports whether the limit is 0, so that the store is not asked.
func (c *counter) closed() bool { return c.amount == 0 && !c.open() }

// gone returns the used units of the window, and left the remaining ones. An open limit can exceed its amount.
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

// exhausted reports whether a check finds no remaining units.
func (c *counter) exhausted() bool {
	return c.check && !c.shadow && !c.soft && c.left() == 0
}

// A place is a descriptor of a request, with its limit.
type place struct {
	match
	hits    int64
	before  int64    // hits of earlier places of the same counter
	counter *counter // nil if nothing is counted
}

// A plan is the content of a request. Plans are reused.
type plan struct {
	domain   string
	home     string    // group of its counters
	places   []place   // one for each descriptor
	counters []counter // at most as many as places
	verdicts []verdict // one for each place, after the store's reply
	ask      fleet.Ask

	charges, returns, checks, closed bool // kinds of changes among the counters
	refused                          bool
}

var plans = sync.Pool{New: func() any { return new(plan) }}

// plan returns the plan of a request. The caller frees it after using it and the store request in it.
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

// few is the largest number of descriptors of a plan that is reused.
const few = 32

// free makes the plan available to another request.
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

// replace removes the limits that other limits of the request replace.
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

// count adds a place to its counter. Places with the same counter are charged together. If their limits differ, which
// an override can cause, the smallest applies.
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
