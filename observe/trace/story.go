package trace

import (
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
)

// A story has the data of a trace until it is exported. Spans are made only then, so that no caller waits for it. Until then a
// pack holds the story.
type story struct {
	trace        ID
	span, parent SpanID
	state        string // tracestate
	remote       bool   // the parent belongs to another program
	late         bool
	why          int

	about        About
	began, ended time.Time
	status       int
	failure      string
	other        bool          // the answer did not come from the first call
	class        outcome.Class // of the call that answered
	parts        []part
	notes        []Attr
	steps        []step
}

// A part is one call of a story, with its attempts.
type part struct {
	span, parent SpanID
	about        About // if the call is a Part
	upstream     string
	operation    string
	id           string
	user         string // the user that the call is counted by, from the scope "user"
	of           *Call  // the call, if it is a Part, until the story is written
	notes        []Attr
	steps        []step
	began        time.Time
	took         time.Duration
	counted      time.Duration // the portion of took in weir.Counts
	class        outcome.Class
	refused      bool
	held         uint8
	attempts     uint16
	reason       error  // why there was no further attempt, until the story is packed
	gaveUp       string // the text of reason, once packed
	tries        []weir.Tried
	statuses     [6]uint16
}

// partOf returns the part of a record that ended at now.
func partOf(r *weir.Record, c *Call, now time.Time) part {
	of := r.Subject()
	p := part{
		upstream: of.Upstream, operation: of.Operation, id: r.ID, began: now.Add(-r.Took - r.Body()), took: r.Took, counted: r.Took,
		user: r.Keys[userScope], class: r.Class, refused: r.Refused, held: r.Held, attempts: r.N, tries: r.Attempts(),
	}
	if c != nil {
		for i := range c.statuses {
			p.statuses[i] = uint16(c.statuses[i].Load())
		}
		if p.span = c.span; c.top != nil {
			p.of, p.parent, p.about, p.began = c, c.parent, c.about, c.began
			p.took = now.Sub(c.began)
		}
	}
	if _, is := r.Why.(*weir.Refusal); !is && r.Why != nil {
		p.reason = r.Why
	}
	return p
}

// kept returns the call as an exemplar.
func (p *part) kept(trace ID) Kept {
	k := Kept{Trace: trace, Upstream: p.upstream, Result: p.class.String(), Took: p.counted, Ended: p.began.Add(p.took)}
	if p.refused && p.attempts <= 1 && p.class != outcome.Canceled {
		k.Result = weir.CallRefused
	}
	return k
}

// spans appends the spans of the story.
func (s *story) spans(all []Span) []Span {
	root := Span{
		Trace: s.trace, ID: s.span, Parent: s.parent, State: s.state, Remote: s.remote,
		Name: s.about.Name, Kind: max(s.about.Kind, Internal), Start: s.began, End: s.ended, Message: s.failure,
	}
	root.text(AttrKept, string(whys[s.why]))
	if s.late {
		root.text(attrSampled, "late")
	}
	root.Attrs = append(root.Attrs, s.notes...)
	root.text(AttrMethod, methodOf(s.about.Method))
	root.text(AttrRoute, s.about.Route)
	if s.status > 0 {
		root.number(AttrStatus, int64(s.status))
	}
	root.Failed = s.failure != "" || s.status >= 500 || s.other && bad(s.class)
	if s.other {
		root.text(AttrClass, s.class.String())
	}
	at := len(all)
	all = stepsOf(append(all, root), s.steps, s, s.span)
	for i := range s.parts {
		p := &s.parts[i]
		if p.parent == (SpanID{}) { // it is the root
			p.tells(&all[at], s.status == 0, !s.other)
			all = p.spans(stepsOf(all, p.steps, s, s.span), s, s.span, s.about.Method)
			continue
		}
		sub := Span{Trace: s.trace, ID: p.span, Parent: p.parent, State: s.state, Name: p.about.Name, Kind: Internal, Start: p.began, End: p.began.Add(p.took)}
		p.tells(&sub, true, true)
		all = p.spans(stepsOf(append(all, sub), p.steps, s, p.span), s, p.span, p.about.Method)
	}
	return all
}

// tells adds the result of the call to a span. With ends, the span has failed if the call has. With answered, the span has the
// result of the call.
func (p *part) tells(s *Span, ends, answered bool) {
	if s.Name == "" {
		s.Name = p.name()
	}
	s.text(AttrUpstream, p.upstream)
	s.text(AttrOperation, p.operation)
	s.Attrs = append(s.Attrs, p.notes...)
	s.text(AttrUser, userOf(p.user))
	s.text(AttrID, observe.Redact(p.id, longestText))
	s.number(attrAttempts, int64(p.attempts))
	if p.held > 0 {
		s.number(attrHeld, int64(p.held))
	}
	if !answered {
		return
	}
	word := p.class.String()
	if n := len(p.tries); p.refused && n > 0 && p.tries[n-1].Reason != "" {
		last := &p.tries[n-1]
		word = "refused"
		s.text(AttrReason, string(last.Reason))
		s.text(AttrLimit, last.Limit)
		s.text(AttrErrorType, string(last.Reason))
	}
	s.text(AttrClass, word)
	if s.Message == "" {
		s.Message = p.gaveUp
	}
	if ends {
		s.Failed = s.Failed || p.refused || bad(p.class) || p.class == outcome.Rejected
	}
}

func (p *part) name() string {
	if p.operation == "" {
		return p.upstream
	}
	return p.upstream + " " + p.operation
}

// userScope is the scope of limits for each user.
const userScope = "user"

// userOf returns a hash that stands for a user. It reveals the user only to a reader who tries possible values.
func userOf(user string) string {
	if strings.HasPrefix(user, "hmac:") || strings.HasPrefix(user, "sha256:") {
		return observe.Redact(user, longestText)
	}
	return (*veil.Veil)(nil).Hide(user)
}

// longestText is the maximum length of a text from elsewhere.
const longestText = 256

// spans appends the spans of the call's delays, waits and attempts. The record lacks the attempts between the first three and the
// last three, so their durations are unknown.
func (p *part) spans(all []Span, s *story, under SpanID, method string) []Span {
	at, first := p.began, len(all)
	end := p.began.Add(p.took)
	for i := range p.tries {
		t := &p.tries[i]
		if i > 0 && t.N != p.tries[i-1].N+1 {
			at = end.Add(-length(p.tries[i:]))
		}
		at = p.try(&all, t, s, under, at, method)
	}
	for i := first; i < len(all); i++ { // clocks are read one after the other, and microseconds are truncated
		if all[i].End.After(end) {
			all[i].End = end
		}
		if all[i].Start.After(all[i].End) {
			all[i].Start = all[i].End
		}
	}
	return all
}

// length returns the total duration of the attempts, including the delays and waits before them.
func length(tries []weir.Tried) (all time.Duration) {
	for i := range tries {
		all += tries[i].Rested + tries[i].Waited + tries[i].Took
	}
	return all
}

// try appends the spans of one attempt whose delay began at at, and returns the end of the attempt.
func (p *part) try(all *[]Span, t *weir.Tried, s *story, under SpanID, at time.Time, method string) time.Time {
	add := func(name string, kind Kind, d time.Duration) *Span {
		*all = append(*all, Span{Trace: s.trace, ID: newSpanID(), Parent: under, State: s.state, Name: name, Kind: kind, Start: at, End: at.Add(d)})
		at = at.Add(d)
		return &(*all)[len(*all)-1]
	}
	if t.Rested > 0 && t.N > 1 {
		add("rest", Internal, t.Rested)
	} else {
		at = at.Add(t.Rested)
	}
	if t.Waited > 0 || t.Reason != "" {
		w := add("wait", Internal, t.Waited)
		w.text(AttrLimit, t.Limit)
		if t.Reason != "" {
			w.Failed = true
			w.text(AttrReason, string(t.Reason))
			w.number(attrHint, milli(t.Hint))
		}
		if t.Asked > 0 { // placed at the end of the wait: the times of several requests are unknown
			*all = append(*all, Span{Trace: s.trace, ID: newSpanID(), Parent: w.ID, State: s.state, Name: "store", Kind: Client, Start: at.Add(-t.Asked), End: at})
		}
	}
	if t.Reason != "" {
		return at
	}
	a := add(p.attemptName(method), Client, t.Took)
	a.ID = p.span.attempt(t.N)
	a.text(AttrMethod, methodOf(method))
	a.text(AttrUpstream, p.upstream)
	a.text(AttrOperation, p.operation)
	status := p.statuses[placeOf(t.N)]
	if status > 0 {
		a.number(AttrStatus, int64(status))
	}
	if t.N > 1 {
		a.number(attrResend, int64(t.N-1))
	}
	a.text(AttrClass, t.Class.String())
	code := observe.Redact(t.Code, longestText)
	a.text(attrCode, code)
	if t.Hint > 0 {
		a.number(attrHint, milli(t.Hint))
	}
	if a.Failed = bad(t.Class) || t.Class == outcome.Rejected; a.Failed {
		a.text(AttrErrorType, errorType(int(status), code, t.Class))
	}
	return at
}

func (p *part) attemptName(method string) string {
	if method == "" {
		return p.name()
	}
	return methodOf(method)
}

// errorType returns the value of error.type: the status if there was a response with an error status.
func errorType(status int, code string, class outcome.Class) string {
	switch {
	case status >= 400:
		return statusText(status)
	case code != "":
		return code
	}
	return class.String()
}
