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

// account tells everybody what the answer has used.
func (m *meter) account() {
	x, used, whole := m.x, m.usage(), m.whole()
	m.end.Usage = x.used(x.rule(), used, whole)
	if b := m.progress; b != nil && b.of.d.o.Callers != nil {
		b.usage.Store(new(b.charge(tokens.Plain.Settle(x.expected(), used))))
	}
	cost, priced := m.cost(used)
	if whole {
		x.d.o.Tokens.Observe(x.expected(), used.Input, used.Output)
		if priced && m.resp.Trailer != nil {
			m.resp.Trailer.Set(CostHeader, m.says(cost))
		}
	}
	m.used(trace.CallOf(m.ctx), used)
	x.tell(used, cost, priced)
}

// whole reports whether the answer came to its end and says what it has used.
func (m *meter) whole() bool {
	said := m.reader.Usage()
	return m.end.Class == outcome.OK && said.Said && tokens.Possible(said)
}

// usage is what the answer says that it has used. Of one that has not said so yet when
// its caller leaves or it is cut, that never does, or that says what cannot be, it is what was
// expected, or what has passed by if that is more.
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
	case u.Input == 0: // it says no more than that nothing was written
		u.Input = e.Input
	}
	if m.reader.Committed() {
		u.Output = max(u.Output, m.count.Tokens(m.x.route.Family, m.x.request.Model)+m.reader.Passed()/bytesPerToken)
	}
	return u
}

// bytesPerToken is for an answer that was not read in pieces.
const bytesPerToken = 4

// announceCost says what the answer has cost, if that is known before its headers go.
func (m *meter) announceCost() {
	m.resp.Header.Set(EstimateHeader, strconv.FormatInt(m.x.expected().Total(), 10))
	if m.err != io.EOF || m.resp.Trailer != nil { // it has its place there
		return
	}
	if cost, ok := m.cost(m.usage()); ok {
		m.resp.Header.Set(CostHeader, m.says(cost))
	}
}

// errNotKept is why an answer that was fetched to renew another is not kept.
var errNotKept = errors.New("the answer cannot be cached")

// cost is what the answer has cost that has used so much, if its model has a price.
func (m *meter) cost(used llm.Usage) (price.Amount, bool) {
	if !m.priced || !used.Said {
		return 0, false
	}
	return m.row.Cost(used), true
}

// says is a cost for callers. One of a model without a price of its own says that it goes by the default.
func (m *meter) says(cost price.Amount) string {
	if m.row.Assumed() {
		return cost.String() + "; price=default"
	}
	return cost.String()
}

// tell tells the listener, and the ledger of the caller, what a request has used.
func (x *exchange) tell(used llm.Usage, cost price.Amount, priced bool) {
	o, keys := &x.d.o, x.keys
	u := Used{Upstream: o.Name, Model: x.request.Model, Tenant: o.Veil.Label(Tenant, keys[Tenant]), User: o.Veil.Label(User, keys[User]), Usage: used, Cost: cost, Priced: priced}
	if o.Ledger != nil && used.Said {
		o.Ledger.Add(u.Tenant, u.User, u.Model, u.Cost, used)
	}
	if o.Events.Used != nil {
		o.Events.Used(u)
	}
}

// remember keeps the answer, if it is one to keep, before its reader has the end of it: who
// asks the same then finds it.
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
