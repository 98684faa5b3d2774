package look

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// A document is a segment or subsegment in X-Ray's form.
type document struct {
	Name, ID    string
	ParentID    string  `json:"parent_id"`
	Start       float64 `json:"start_time"`
	End         float64 `json:"end_time"` // 0 if it has not ended
	Error       bool
	Throttle    bool
	Fault       bool
	Cause       json.RawMessage
	Annotations map[string]any
	HTTP        struct {
		Response struct{ Status int64 }
	}
	Subsegments []document
}

// readSegment parses a document, and appends it and its subsegments.
func readSegment(all []Span, text string) ([]Span, error) {
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return all, fmt.Errorf("a segment cannot be read: %w", err)
	}
	return d.spans(all, d.ParentID, d.Name), nil
}

func (d *document) spans(all []Span, parent, service string) []Span {
	s := Span{ID: d.ID, Parent: parent, Name: d.Name, Service: service, Began: instant(d.Start), Open: d.End == 0, Error: d.wrong()}
	if !s.Open {
		s.Took = max(0, instant(d.End).Sub(s.Began))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Annotations)) {
		s.Notes = append(s.Notes, Note{name, fmt.Sprint(d.Annotations[name])})
	}
	all = append(all, s)
	for i := range d.Subsegments {
		all = d.Subsegments[i].spans(all, d.ID, service)
	}
	return all
}

// instant converts seconds to a time, to the microsecond.
func instant(s float64) time.Time { return time.UnixMicro(int64(math.Round(s * 1e6))) }

func (d *document) wrong() string {
	var words []string
	switch {
	case d.Throttle:
		words = append(words, "throttle")
	case d.Fault:
		words = append(words, "fault")
	case d.Error:
		words = append(words, "error")
	default:
		return ""
	}
	if d.HTTP.Response.Status > 0 {
		words = append(words, fmt.Sprint(d.HTTP.Response.Status))
	}
	var cause struct {
		Exceptions []struct{ Type, Message string }
	}
	_ = json.Unmarshal(d.Cause, &cause) // it may be the ID of another segment's exception
	for _, e := range cause.Exceptions {
		words = append(words, strings.TrimSpace(e.Type+" "+e.Message))
	}
	return strings.Join(words, " ")
}
