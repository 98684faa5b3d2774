package xray

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/seed1158cd35/weir/observe/trace"
)

// A segment is a document as X-Ray's daemon takes it, of a request or of what is beneath it (a subsegment). It is written by
// the published schema, version 1.0.0; of a cause it has what the developer guide says, a list of exceptions.
type segment struct {
	Name        string                    `json:"name"`
	ID          string                    `json:"id"`
	TraceID     string                    `json:"trace_id,omitempty"`  // of what is sent by itself
	ParentID    string                    `json:"parent_id,omitempty"` // the same
	Type        string                    `json:"type,omitempty"`      // "subsegment" of a subsegment that is sent by itself
	Start       seconds                   `json:"start_time"`
	End         seconds                   `json:"end_time"`
	Namespace   string                    `json:"namespace,omitempty"` // "remote" of a call to elsewhere
	Error       bool                      `json:"error,omitempty"`     // the caller's fault, or too much
	Throttle    bool                      `json:"throttle,omitempty"`  // too much; an error, too
	Fault       bool                      `json:"fault,omitempty"`
	Cause       *cause                    `json:"cause,omitempty"`
	HTTP        *exchange                 `json:"http,omitempty"`
	Annotations map[string]any            `json:"annotations,omitempty"`
	Metadata    map[string]map[string]any `json:"metadata,omitempty"` // by namespace
	Subsegments []*segment                `json:"subsegments,omitempty"`
}

// seconds are an instant, to the microsecond.
type seconds time.Time

func (s seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Time(s).UnixMicro()) / 1e6)
}

type cause struct {
	Exceptions []exception `json:"exceptions"`
}

type exception struct {
	ID      string `json:"id"`
	Type    string `json:"type,omitempty"`
	Message string `json:"message,omitempty"`
	Remote  bool   `json:"remote,omitempty"`
}

type exchange struct {
	Request  *request  `json:"request,omitempty"`
	Response *response `json:"response,omitempty"`
}

type request struct {
	Method string `json:"method,omitempty"`
}

type response struct {
	Status int64 `json:"status"`
}

// document is the segment of a request, with all that is beneath it.
func document(spans []trace.Span, service string) *segment {
	told := tell(spans, service)
	root := &spans[0]
	top := segmentOf(root)
	top.Name, top.Namespace = nameOf(service), ""
	top.TraceID = root.Trace.XRay()
	if root.Parent != (trace.SpanID{}) {
		top.ParentID = root.Parent.String()
	}
	top.Annotations = make(map[string]any, len(told.annotations))
	for _, a := range told.annotations {
		top.Annotations[a.Key] = valueOf(a)
	}
	rest := top.Metadata
	top.Metadata = map[string]map[string]any{"default": told.metadata}
	for namespace, values := range rest {
		top.Metadata[namespace] = values
	}
	by := map[trace.SpanID]*segment{root.ID: top}
	for i := 1; i < len(spans); i++ {
		s := &spans[i]
		sub := segmentOf(s)
		if by[s.ID] = sub; by[s.Parent] == nil {
			s.Parent = root.ID
		}
		over := by[s.Parent]
		over.Subsegments = append(over.Subsegments, sub)
	}
	return top
}

// segmentOf is a span as a subsegment.
func segmentOf(s *trace.Span) *segment {
	g := &segment{Name: nameOf(s.Name), ID: s.ID.String(), Start: seconds(s.Start), End: seconds(s.End)}
	if s.Kind == trace.Client && s.Get(peerKey).Text != "" {
		g.Namespace = "remote"
	}
	status := s.Get(trace.AttrStatus).Number
	g.blames(s, status)
	if method := s.Get(trace.AttrMethod).Text; method != "" || status > 0 {
		g.HTTP = &exchange{Request: &request{Method: method}}
		if status > 0 {
			g.HTTP.Response = &response{Status: status}
		}
	}
	more := make(map[string]any)
	for _, a := range s.Attrs {
		if strings.HasPrefix(a.Key, "weir.") || strings.HasPrefix(a.Key, "gen_ai.") {
			more[a.Key] = valueOf(a)
		}
	}
	if len(more) > 0 {
		g.Metadata = map[string]map[string]any{"weir": more}
	}
	return g
}

// blames says whose fault it was, if it was one.
func (g *segment) blames(s *trace.Span, status int64) {
	switch {
	case isThrottle(s) && (s.Failed || status == 429):
		g.Error, g.Throttle = true, true
	case status >= 500:
		g.Fault = true
	case status >= 400, s.Failed && s.Get(trace.AttrClass).Text == "rejected":
		g.Error = true
	case s.Failed:
		g.Fault = true
	}
	if kind := s.Get(trace.AttrErrorType).Text; g.Error && (kind != "" || s.Message != "") || g.Fault {
		g.Cause = &cause{[]exception{{ID: s.ID.String(), Type: clip(kind, mostName), Message: clip(s.Message, mostMessage), Remote: g.Namespace != ""}}}
	}
}

// nameOf is a name without what X-Ray does not take in one.
func nameOf(s string) string {
	s = strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.L, unicode.Z, unicode.N) || strings.ContainsRune(`_.:/%&#=+\-@`, c) {
			return c
		}
		return -1
	}, clip(s, mostName))
	return first(s, "weir")
}

func valueOf(a trace.Attr) any {
	switch a.Is {
	case trace.IsNumber:
		return a.Number
	case trace.IsFloat:
		return a.Float
	case trace.IsBool:
		return a.Number != 0
	case trace.IsTexts:
		return a.Texts
	}
	return clip(a.Text, mostAnnotation)
}
