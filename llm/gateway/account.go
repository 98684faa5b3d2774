package gateway

import (
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/outcome"
)

// account reports the usage of the answer to the tracer, the estimator, the ledger and the events, and in the trailer.
func (m *meter) account() {
	x, used, whole := m.x, m.usage(), m.whole()
	cost, priced := m.cost(used)
	m.end.Usage = x.used(x.rule(), used, whole)
	m.spent(m.end.Usage, cost, priced)
	if b := m.progress; b != nil && b.of.d.o.Callers != nil {
		charge := b.charge(tokens.Plain.Settle(x.expected(), used))
		m.spent(charge, cost, priced)
		b.usage.Store(&charge)
	}
	if whole {
		x.d.o.Tokens.Observe(x.expected(), used.Input, used.Output)
		if priced && m.resp.Trailer != nil {
			m.resp.Trailer.Set(CostHeader, m.says(cost))
		}
	}
	m.used(trace.CallOf(m.ctx), used)
	x.tell(used, cost, priced)
}

// whole reports whether the answer is complete and reports plausible usage.
func (m *meter) whole() bool {
	said := m.reader.Usage()
	return m.end.Class == outcome.OK && said.Said && tokens.Possible(said)
}

// usage returns the usage that the answer reports. If the answer is incomplete or reports impossible usage, it returns
// at least the estimate, or the output that was read if that is more.
func (m *meter) usage() llm.Usage {
	u, e := m.reader.Usage(), m.x.expected()
	switch {
	case !m.whole():
		if !u.Said || !tokens.Possible(u) {
			u = llm.Usage{Said: true}
		}
		u.Input, u.Output = max(u.Input, e.Input), max(u.Output, e.Output)
	case u.Output > 0 || !m.x.route.Generates:
		return u
	case u.Input == 0: // it only reports that there was no output
		u.Input = e.Input
	}
	if m.reader.Committed() {
		u.Output = max(u.Output, m.count.Tokens(m.x.route.Family, m.x.request.Model)+m.reader.Passed()/bytesPerToken)
	}
	return u
}

// bytesPerToken converts bytes of an answer that was not read in pieces to tokens.
const bytesPerToken = 4

// announceCost sets the estimate header, and the cost header if the answer was read completely.
func (m *meter) announceCost() {
	m.resp.Header.Set(EstimateHeader, strconv.FormatInt(m.x.expected().Total(), 10))
	if m.err != io.EOF || m.resp.Trailer != nil { // the cost goes into the trailer
		return
	}
	if cost, ok := m.cost(m.usage()); ok {
		m.resp.Header.Set(CostHeader, m.says(cost))
	}
}

// errNotKept is the error of a cache refresh whose answer cannot be cached.
var errNotKept = errors.New("the answer cannot be cached")

// cost returns the cost of the usage. It returns false if the model has no price or the usage is unknown.
func (m *meter) cost(used llm.Usage) (price.Amount, bool) {
	if !m.priced || !used.Said {
		return 0, false
	}
	return m.row.Cost(used), true
}

// says formats a cost for callers. It marks a cost that is based on the default price.
func (m *meter) says(cost price.Amount) string {
	if m.row.Assumed() {
		return cost.String() + "; price=default"
	}
	return cost.String()
}

// tell reports the usage of a request to the ledger and the event listener.
func (x *exchange) tell(used llm.Usage, cost price.Amount, priced bool) {
	o, keys := &x.d.o, x.keys
	u := Used{Upstream: o.Name, Model: x.request.Model, Tenant: o.Veil.Label(Tenant, keys[Tenant]), User: o.Veil.Label(User, keys[User]), Usage: used, Cost: cost, Priced: priced}
	if o.Ledger != nil && used.Said {
		o.Ledger.Add(u.Tenant, u.User, u.Model, u.Cost, used)
	}
	if o.Events.Used != nil {
		o.Events.Used(u)
	}
	if all := x.callers(); all != nil {
		all.Runs.Add(runOf(keys), used.Total(), price.Micro(cost), priced)
	}
}

// remember stores a cacheable answer. It runs before the reader gets the end of the answer, so that a repeated request
// finds it in the cache.
func (m *meter) remember() {
	r := m.reader
	if !m.keep || m.end.Class != outcome.OK || r.Blind() || cache.Storable(cache.Answer{
		Request: m.resp.Request.Header, Header: m.resp.Header, Status: m.resp.StatusCode,
		Complete: r.Complete() && !r.Truncated(), Failed: r.Failed() != nil,
	}) != nil {
		return
	}
	e := cache.Entry{
		Status: m.resp.StatusCode, Body: m.copy, Stored: time.Now(),
		Header: map[string][]string{"Content-Type": m.resp.Header["Content-Type"]},
		Meta:   map[string]string{form: m.x.form(r.Streamed())},
	}
	if t := r.Text(); t.Plain && !t.Thoughts {
		e.Meta[text], e.Meta[model] = t.Text, t.Model
	}
	if b := m.progress; b != nil && b.keep {
		b.entry.Store(&e)
		return
	}
	if key := m.x.key; key != nil && m.x.d.o.Cache.Put(e.Stored, *key, e) {
		if q := m.x.wording(); q != nil {
			m.x.d.o.Similar.Add(e.Stored, *key, q.rest, q.text, m.x.d.o.Cache.Until(e), answers.Accepted(m.x.language)...)
		}
	}
}
