package trace

import (
	"context"
	"time"
)

// Maximum numbers of notes and steps of a call.
const (
	mostNotes = 24
	mostSteps = 16
)

// A step is something that was done for a request in addition to its attempts.
type step struct {
	name  string
	began time.Time
	took  time.Duration
	notes []Attr
}

type said struct {
	notes []Attr
	steps []step
}

// saying returns the notes and steps, and allocates them on first use. The caller holds mu.
func (c *Call) saying() *said {
	if c.said == nil {
		c.said = new(said)
	}
	return c.said
}

// Note adds attributes to the span of the call. A later value replaces an earlier one of the same key. Values must not contain
// secrets. Note is safe for concurrent use. A call has at most 24 attributes: further keys are ignored.
func (c *Call) Note(notes ...Attr) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.saying()
	for _, n := range notes {
		all.note(n)
	}
}

// note adds or replaces one attribute.
func (s *said) note(n Attr) {
	for i := range s.notes {
		if s.notes[i].Key == n.Key {
			s.notes[i] = n
			return
		}
	}
	if len(s.notes) < mostNotes {
		s.notes = append(s.notes, n)
	}
}

// Step adds a child span that began at began and ends now, such as a look-up. With the attribute error.type, the span has failed.
// Steps of a Part that has ended are ignored. Step is safe for concurrent use. A call has at most 16 steps: further ones are
// ignored.
func (c *Call) Step(name string, began time.Time, notes ...Attr) {
	if c == nil {
		return
	}
	took := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.saying(); len(all.steps) < mostSteps {
		all.steps = append(all.steps, step{name: name, began: began, took: took, notes: append([]Attr(nil), notes...)})
	}
}

type beside struct{ of *Call }

// Beside returns the weir.Call.Note of a call that is made for the request and recorded as a Step. The call has no separate span,
// but its refusal counts as one of the request. The result is nil if the request is not traced.
func (c *Call) Beside() any {
	if c == nil {
		return nil
	}
	return beside{c}
}

// noteOf returns the call of a note, and whether the call is not an attempt of its request.
func noteOf(note any) (c *Call, isBeside bool) {
	if b, ok := note.(beside); ok {
		return b.of, true
	}
	c, _ = note.(*Call)
	return c, false
}

// worsens lowers the request's reason to be kept to why, if that is more important.
func (c *Call) worsens(why int) {
	if c.top != nil {
		c = c.top
	}
	c.mu.Lock()
	c.why = min(c.why, why)
	c.mu.Unlock()
}

func (c *Call) noted() ([]Attr, []step) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said == nil {
		return nil, nil
	}
	return c.said.notes[:len(c.said.notes):len(c.said.notes)], c.said.steps[:len(c.said.steps):len(c.said.steps)]
}

func stepsOf(all []Span, steps []step, s *story, under SpanID) []Span {
	for i := range steps {
		d := &steps[i]
		sp := Span{
			Trace: s.trace, ID: newSpanID(), Parent: under, State: s.state, Name: d.name, Kind: Internal,
			Start: d.began, End: d.began.Add(d.took), Attrs: d.notes,
		}
		sp.Failed = sp.Get(AttrErrorType).Text != ""
		all = append(all, sp)
	}
	return all
}

type callKey struct{}

// CallFor helps a context that stores a call in a field to implement Value. It returns c if key asks for the call.
func CallFor(key any, c *Call) (*Call, bool) {
	if key == (callKey{}) {
		return c, true
	}
	return nil, false
}

// CallOf returns the call in ctx, nil if there is none.
func CallOf(ctx context.Context) *Call {
	if a, ok := ctx.Value(attemptKey{}).(Attempt); ok {
		return a.c
	}
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
