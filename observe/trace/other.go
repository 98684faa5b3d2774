package trace

import (
	"slices"

	"github.com/seed1158cd35/weir/outcome"
)

// other is what answered a request in the place of its first call.
type other struct {
	by    *Call // nil if it was no call
	notes []Attr
}

// answerNotes are the notes that describe the answer, and not the request.
var answerNotes = []string{AttrAIAnswered, AttrAIInput, AttrAIOutput, AttrEstimated, AttrCost}

// AnsweredBy states that the request was not answered by its first call. It was answered by another, a Part of it, or by none if by is nil, such
// as from a cache; notes then describe the answer. The span of the request has the result and the notes of the answer.
func (c *Call) AnsweredBy(by *Call, notes ...Attr) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.other = &other{by, notes}
	c.mu.Unlock()
}

// result returns the class of the call that answered, which is among the parts if it has ended.
func (o *other) result(parts []part) outcome.Class {
	if o == nil {
		return outcome.Unknown
	}
	if o.by != nil {
		for i := range parts {
			if parts[i].of == o.by {
				return parts[i].class
			}
		}
	}
	return outcome.OK
}

// noted returns the notes of the request with those of the answer.
func (o *other) noted(notes []Attr) []Attr {
	if o == nil {
		return notes
	}
	ofAnswer := func(a Attr) bool { return slices.Contains(answerNotes, a.Key) }
	all := slices.DeleteFunc(slices.Clone(notes), ofAnswer)
	if o.by == nil {
		return append(all, o.notes...)
	}
	answer, _ := o.by.noted()
	for _, a := range answer {
		if ofAnswer(a) {
			all = append(all, a)
		}
	}
	return all
}
