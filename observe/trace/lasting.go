package trace

// Lasting begins a span below the request's for something that outlives the request, such as a connection. The span is kept if it
// ends with an error, if the request was sampled, or if a call that belongs to it was kept. Use the result as the weir.Call.Note
// of these calls. There may be any number of them: a successful one has no span, and any other is kept as usual, immediately,
// below this span.
func (c *Call) Lasting(name string) *Call {
	if c == nil {
		return nil
	}
	l := c.t.begin(Parent{Trace: c.trace, Span: c.span, State: c.state}, About{Name: name})
	l.sampled, l.local, l.lasts = c.sampled, true, true
	return l
}

// keeps keeps a call that belongs to a Lasting span.
func (c *Call) keeps(p part, why int) {
	c.worsens(why)
	p.span, p.parent = newSpanID(), SpanID{}
	c.t.queue.put(&story{
		trace: c.trace, span: p.span, parent: c.span, state: c.state, late: !c.sampled, why: why,
		began: p.began, ended: p.began.Add(p.took), parts: []part{p},
	})
}
