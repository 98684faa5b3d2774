package config

import (
	"math"
	"slices"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/runs"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

var fairFields = []field[weir.Fair]{
	one("by", word, func(f *weir.Fair) *string { return &f.By }, "required", ""),
	one("high", count[int](1), func(f *weir.Fair) *int { return &f.Weights.High }, "16", ""),
	one("normal", count[int](1), func(f *weir.Fair) *int { return &f.Weights.Normal }, "4", ""),
	one("low", count[int](1), func(f *weir.Fair) *int { return &f.Weights.Low }, "1", ""),
	one("longest", count[int](1), func(f *weir.Fair) *int { return &f.Longest }, "10000", ""),
	one("per_flow", count[int](1), func(f *weir.Fair) *int { return &f.PerFlow }, "1000", ""),
}

func readPriority(d *decoder, n *node, u *site) {
	if s, ok := source.read(d, n); ok {
		u.Priority = &s
	}
}

// settlePriority queues calls by priority if some have one and the file does not configure fairness.
func settlePriority(n *node, u *site) {
	own := slices.ContainsFunc(u.Policy.Operations, func(o weir.Operation) bool { return o.Priority != limit.Normal })
	if n.Get("fair") == nil && u.Policy.Fair.By == "" && (own || u.Priority != nil) {
		u.Policy.Fair = weir.Fair{By: byPriority, PerFlow: 10_000} // as many as may wait at all
	}
}

// byRun lets waiting calls take turns by run. It bounds no queue, and gives deliveries the same share as settleLater.
var byRun = weir.Fair{By: runs.Scope, Weights: laterWeights, Longest: math.MaxInt32, PerFlow: math.MaxInt32}

// laterWeights give deliveries a twentieth of the capacity while direct calls wait as well.
var laterWeights = weir.PriorityWeights{High: 76, Normal: 19, Low: 1}

// settleRuns lets runs take turns, if calls have their names and the file does not configure fairness.
func settleRuns(n *node, u *site) {
	if _, named := u.Keys[runs.Scope]; !named || n.Get("fair") != nil {
		return
	}
	switch u.Policy.Fair.By {
	case "":
		u.Policy.Fair = byRun
	case byPriority:
		u.Policy.Fair.By = runs.Scope
	}
}

// settleLater lets direct calls go before deliveries to the same upstream, if the file does not configure fairness
// there. While both wait, deliveries get a twentieth of the capacity.
func (f *document) settleLater() {
	if f.Deliveries == nil {
		return
	}
	for i := range f.Upstreams {
		if u := &f.Upstreams[i]; u.Policy.Fair.By == "" && f.delivers(u) {
			u.Policy.Fair = weir.Fair{By: byPriority, Weights: laterWeights, Longest: math.MaxInt32, PerFlow: math.MaxInt32} // no lower bounds than without fairness
		}
	}
}

// delivers reports whether deliveries go to an upstream: by a route or operation, as callbacks, or from a queue,
// whose requests may be for any upstream.
func (f *document) delivers(u *Upstream) bool {
	if f.Deliveries.Requests != nil || slices.ContainsFunc(u.Routes, func(r proxy.Route) bool { return r.Deliver != proxy.DeliverNever }) {
		return true
	}
	for _, o := range u.Own {
		if o.Over(proxy.Route{}).Deliver != proxy.DeliverNever {
			return true
		}
	}
	for _, c := range f.Deliveries.Callbacks {
		if c.Upstream == u.Name {
			return true
		}
	}
	return false
}

// byPriority is the scope of flows if none is configured. No call has a value of it, so all calls form one flow.
const byPriority = "priority"

func readFair(d *decoder, n *node, u *site) {
	if isOff(n) {
		return
	}
	if object(d, n, fairFields, &u.Policy.Fair) && n.Get("by") == nil {
		d.Bad(n, "write fair: user", "has no scope")
		u.Policy.Fair = weir.Fair{}
	}
}
