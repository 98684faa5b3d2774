package trace

import (
	"slices"

	"github.com/seed1158cd35/weir/outcome"
)

// other describes an answer that did not come from the first call of a request.
type other struct {
	by    *Call // nil if the answer did not come from a call
	notes []Attr
}

// answerNotes are the notes that describe the answer rather than the request.
var answerNotes = []string{AttrAIAnswered, AttrAIInput, AttrAIOutput, AttrEstimated, AttrCost}

// AnsweredBy records that the first call did not answer the request. The answer came from by, which is a Part, or from elsewhere
// if by is nil, for instance from a cache. In that case notes describe the answer. The span of the request gets the result and
// the notes of the answer.
func (c *Call) AnsweredBy(by *Call, notes ...Attr) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.other = &other{by, notes}
	c.mu.Unlock()
}

// result returns the class of the call that answered. The call is among the parts if it has ended.
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

// noted replaces the notes about the answer in the notes of the request.
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
