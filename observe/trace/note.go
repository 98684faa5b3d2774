package trace

import (
	"context"
	"time"
)

// What a program adds to a call's span, and to its trace, is bounded: what comes beyond is not noted.
const (
	mostNotes = 24
	mostSteps = 16
)

// A step is something that was done for a request beside its attempts.
type step struct {
	name  string
	began time.Time
	took  time.Duration
	notes []Attr
}

// said is what was noted of a call.
type said struct {
	notes []Attr
	steps []step
}

// saying is what was noted so far, under the lock.
func (c *Call) saying() *said {
	if c.said == nil {
		c.said = new(said)
	}
	return c.said
}

// Note adds attributes to the span of the call. A later one of the same key counts. No value may be a secret.
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

// note is Note of one attribute.
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

// Step adds a span under that of the call for something that began then and has ended now, such as a look-up. One with the
// attribute error.type has failed. What is added to a Part that has ended is not there.
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

// A beside is the note of a call of weir that is no attempt of the request's.
type beside struct{ of *Call }

// Beside is what to give as weir.Call.Note to a call that is made for the request and of which a Step tells: it has no span
// of its own, but a refusal of it is one of the request. It is nil if the request is not traced.
func (c *Call) Beside() any {
	if c == nil {
		return nil
	}
	return beside{c}
}

// noteOf is the call that a note is of, and whether the record is one beside it.
func noteOf(note any) (c *Call, isBeside bool) {
	if b, ok := note.(beside); ok {
		return b.of, true
	}
	c, _ = note.(*Call)
	return c, false
}

// worsens has the request kept for what became of a call beside it.
func (c *Call) worsens(why int) {
	if c.top != nil {
		c = c.top
	}
	c.mu.Lock()
	c.why = min(c.why, why)
	c.mu.Unlock()
}

// noted are the notes and steps of the call so far.
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

// stepsOf appends the spans of a call's steps.
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

// CallFor answers the Value method of a context that keeps a call itself: it is c if that is what the key asks for.
func CallFor(key any, c *Call) (*Call, bool) {
	if key == (callKey{}) {
		return c, true
	}
	return nil, false
}

// CallOf is the call that ctx is within, nil if there is none.
func CallOf(ctx context.Context) *Call {
	if a, ok := ctx.Value(attemptKey{}).(Attempt); ok {
		return a.c
	}
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
