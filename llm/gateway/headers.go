package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/observe/trace"
)

// Headers of every answer from a model or instead of one.
const (
	TierHeader       = "X-Weir-Tier"       // source of the answer: primary, or the name of a tier
	ConfidenceHeader = "X-Weir-Confidence" // from 0 to 1
	DegradedHeader   = "X-Weir-Degraded"   // true if a better tier failed
	CacheHeader      = "X-Weir-Cache"      // hit, stale, old, similar or miss
	latencyHeader    = "X-Weir-Latency-Ms" // until the start of the answer
	EstimateHeader   = "X-Weir-Tokens-Estimated"
	CostHeader       = "X-Weir-Cost"    // in the currency of the price table; in the trailer of a stream
	ReducedHeader    = "X-Weir-Reduced" // reduced features, if any
	ageHeader        = "Age"
)

// announce sets the headers that describe the source of an answer.
func (c *conduct) announce(resp *http.Response, from cascade.Result[*http.Response]) {
	h := resp.Header
	h.Set(TierHeader, from.Tier)
	h.Set(ConfidenceHeader, percent(from.Confidence))
	h.Set(DegradedHeader, strconv.FormatBool(from.Degraded))
	if reduced := c.x.d.reduced(); reduced != "" {
		h.Set(ReducedHeader, reduced)
	}
	took := time.Since(c.start)
	h.Set(latencyHeader, strconv.FormatInt(took.Milliseconds(), 10))
	state := ""
	if c.x.key != nil {
		state = c.found()
		if !c.replayed {
			state = cache.Miss.String()
		}
		h.Set(CacheHeader, state)
	}
	if of := trace.CallOf(c.r.Context()); of != nil {
		of.Note(trace.Text(trace.AttrTier, from.Tier), trace.Bool(trace.AttrDegraded, from.Degraded))
		if state != "" {
			of.Note(trace.Text(trace.AttrCache, state))
		}
		c.answered(of, resp)
	}
	if c.x.d.o.Events.Answered != nil {
		c.x.d.o.Events.Answered(Answered{Upstream: c.x.d.o.Name, Tier: from.Tier, Degraded: from.Degraded, Cache: state, Took: took})
	}
}

// reduced lists the features that are reduced, or returns "" if there are none.
func (d *Dialect) reduced() string {
	if d.o.Maintenance == nil {
		return ""
	}
	return strings.Join(d.o.Maintenance.Reduced, ", ")
}

// percent formats a share from 0 to 1.
func percent(share float64) string {
	if share == 1 {
		return "1"
	}
	return strconv.FormatFloat(share, 'f', -1, 64)
}
