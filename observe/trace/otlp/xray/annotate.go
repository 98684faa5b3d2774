package xray

import (
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/observe/trace"
)

// Attributes that X-Ray turns into annotations and metadata, as for the exporter of the OpenTelemetry collector. Attributes named
// in the list become annotations, by which traces can be searched. JSON under the prefix, followed by a namespace, becomes
// metadata.
const (
	annotationsKey = "aws.xray.annotations"
	metadataKey    = "aws.xray.metadata.default"
	peerKey        = "peer.service" // a node of the service map, for requests sent to it
)

// Names of spans in X-Ray.
const (
	rateLimitCheck = "rate limit check"
	modelCall      = "model call"
)

// requests splits spans into groups: the root span of a request and the spans below it.
func requests(spans []trace.Span) iter.Seq[[]trace.Span] {
	return func(yield func([]trace.Span) bool) {
		for len(spans) > 0 {
			n := 1
			for n < len(spans) && spans[n].Get(trace.AttrKept).Text == "" {
				n++
			}
			if !yield(spans[:n:n]) {
				return
			}
			spans = spans[n:]
		}
	}
}

// A story has the annotations and metadata of a request.
type story struct {
	annotations []trace.Attr
	metadata    map[string]any
}

// tell derives the annotations and metadata of a request from its spans.
func tell(spans []trace.Span, service string) story {
	root := &spans[0]
	model := answering(spans)
	s := story{annotations: make([]trace.Attr, 0, 10)}
	text := func(key, value string) {
		if value != "" {
			s.annotations = append(s.annotations, trace.Text(key, clip(value, mostAnnotation)))
		}
	}
	text("model_id", first(model.Get(trace.AttrAIAnswered).Text, model.Get(trace.AttrAIModel).Text))
	if tier := root.Get(trace.AttrTier).Text; tier != "" && tier != "primary" && tier != "cached" {
		text("fallback_tier", tier)
	}
	if cache := root.Get(trace.AttrCache).Text; cache != "" {
		s.annotations = append(s.annotations, trace.Bool("cache_hit", cache != "miss"))
	}
	code, throttled := troubles(spans)
	text("error_code", code)
	s.annotations = append(s.annotations, trace.Bool("is_throttle", throttled))
	text("status", root.Get(trace.AttrClass).Text)
	text("user_id", root.Get(trace.AttrUser).Text)
	text("operation", root.Get(trace.AttrOperation).Text)
	text("service", service)
	text("route", first(root.Get(trace.AttrRoute).Text, root.Get(trace.AttrUpstream).Text))
	s.metadata = metadata(spans, model)
	for i := range spans {
		rename(&spans[i], model.Get(trace.AttrAIModel).Text != "")
	}
	return s
}

// answering returns the span of the call that a model answered: that of the last tier that did, or the request's.
func answering(spans []trace.Span) *trace.Span {
	for i := len(spans) - 1; i > 0; i-- {
		if spans[i].Get(trace.AttrAIOutput).Is == trace.IsNumber {
			return &spans[i]
		}
	}
	return &spans[0]
}

// troubles returns the last error, and whether any span was throttled.
func troubles(spans []trace.Span) (code string, throttled bool) {
	for i := range spans {
		s := &spans[i]
		if s.Failed {
			code = first(s.Get(trace.AttrReason).Text, s.Get(trace.AttrErrorType).Text, code)
		}
		throttled = throttled || isThrottle(s)
	}
	return code, throttled
}

// isThrottle reports whether weir or the upstream refused because of a rate or quota.
func isThrottle(s *trace.Span) bool {
	switch s.Get(trace.AttrReason).Text {
	case "rate_limited", "quota_exhausted", "concurrency_limited":
		return true
	}
	return s.Get(trace.AttrClass).Text == "throttled" || s.Get(trace.AttrStatus).Number == 429
}

func metadata(spans []trace.Span, model *trace.Span) map[string]any {
	root := &spans[0]
	m := map[string]any{"latency_ms": float64(root.End.Sub(root.Start).Microseconds()) / 1000}
	if in := model.Get(trace.AttrAIInput); in.Is == trace.IsNumber {
		usage := map[string]any{"input_tokens": in.Number, "output_tokens": model.Get(trace.AttrAIOutput).Number}
		if cost := model.Get(trace.AttrCost); cost.Is == trace.IsFloat {
			usage["estimated_cost_usd"] = cost.Float
		}
		m["fm_usage"] = usage
	}
	message := ""
	for i := range spans {
		if spans[i].Failed && spans[i].Message != "" {
			message = spans[i].Message
		}
	}
	if message != "" {
		m["errors"] = map[string]any{"error_message": clip(message, mostMessage)}
	}
	return m
}

// rename sets the name that X-Ray shows.
func rename(s *trace.Span, models bool) {
	switch {
	case s.Name == "wait":
		s.Name = rateLimitCheck
	case s.Kind == trace.Client && s.Name != "store":
		s.Attrs = append(s.Attrs, trace.Text(peerKey, s.Get(trace.AttrUpstream).Text))
		if models {
			s.Name = modelCall
		}
	}
}

func annotate(spans []trace.Span, service string) {
	for request := range requests(spans) {
		s := tell(request, service)
		names := make([]string, len(s.annotations))
		for i := range s.annotations {
			names[i] = s.annotations[i].Key
		}
		root := &request[0]
		root.Attrs = append(root.Attrs, s.annotations...)
		root.Attrs = append(root.Attrs, trace.Texts(annotationsKey, names))
		if text, err := json.Marshal(s.metadata); err == nil {
			root.Attrs = append(root.Attrs, trace.Text(metadataKey, string(text)))
		}
	}
}

const (
	mostAnnotation = 1000 // characters, by X-Ray's schema
	mostMessage    = 1000
)

// clip returns at most n bytes of s, in complete characters.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}
