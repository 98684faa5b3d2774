package trace

// Lasting is something that goes on when the request that it began with has ended, such as a connection: a span under the
// request's. It is kept if it ends with an error, if the request is one of those that are kept if they go well, or if
// anything was kept that belongs to it. It is the weir.Call.Note of the calls that do: one that goes well has no span, as
// there may be any number of them; another is kept as any call is, at once, in the same trace and under this span.
func (c *Call) Lasting(name string) *Call {
	if c == nil {
		return nil
	}
	l := c.t.begin(Parent{Trace: c.trace, Span: c.span, State: c.state}, About{Name: name})
	l.sampled, l.local, l.lasts = c.sampled, true, true
	return l
}

// keeps keeps a call that belongs to what lasts.
func (c *Call) keeps(p part, why int) {
	c.worsens(why)
	p.span, p.parent = newSpanID(), SpanID{}
	c.t.queue.put(&story{
		trace: c.trace, span: p.span, parent: c.span, state: c.state, late: !c.sampled, why: why,
		began: p.began, ended: p.began.Add(p.took), parts: []part{p},
	})
}
