package look

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An exported is what OTLP has of spans, in JSON.
type exported struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes attributes }
		ScopeSpans []struct{ Spans []exportedSpan }
	}
}

type exportedSpan struct {
	SpanID, ParentSpanID               string
	Name                               string
	StartTimeUnixNano, EndTimeUnixNano number
	Attributes                         attributes
	Status                             struct {
		Code    any // 2 or "STATUS_CODE_ERROR"
		Message string
	}
}

// A number is one of 64 bits, which JSON has as a text or as a number.
type number int64

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*n = number(v)
	return err
}

type attributes []struct {
	Key   string
	Value map[string]json.RawMessage
}

// text is what a value says.
func text(value map[string]json.RawMessage) string {
	for _, raw := range value { // one
		var v any
		if json.Unmarshal(raw, &v) == nil {
			if s, ok := v.(string); ok {
				return s
			}
			return string(raw)
		}
	}
	return ""
}

func (e *exported) spans(all []Span) []Span {
	for _, r := range e.ResourceSpans {
		service := ""
		for _, a := range r.Resource.Attributes {
			if a.Key == "service.name" {
				service = text(a.Value)
			}
		}
		for _, scope := range r.ScopeSpans {
			for i := range scope.Spans {
				all = append(all, scope.Spans[i].span(service))
			}
		}
	}
	return all
}

func (e *exportedSpan) span(service string) Span {
	s := Span{ID: e.SpanID, Parent: e.ParentSpanID, Name: e.Name, Service: service, Began: time.Unix(0, int64(e.StartTimeUnixNano)), Open: e.EndTimeUnixNano == 0}
	if !s.Open {
		s.Took = max(0, time.Duration(e.EndTimeUnixNano-e.StartTimeUnixNano))
	}
	for _, a := range e.Attributes {
		s.Notes = append(s.Notes, Note{a.Key, text(a.Value)})
	}
	if code := fmt.Sprint(e.Status.Code); code == "2" || code == "STATUS_CODE_ERROR" {
		s.Error = cmp.Or(e.Status.Message, "error")
	}
	s.settle()
	return s
}
