// Package otlp exports spans by OpenTelemetry's protocol (OTLP 1.11), over HTTP or gRPC. It encodes messages directly, without
// intermediate structs, because it needs few kinds of them.
package otlp

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/seed1158cd35/weir/observe/trace"
)

// A Resource identifies the source of spans.
type Resource struct {
	Service  string            // service.name; "" means weir
	Version  string            // service.version; "" omits it
	Instance string            // service.instance.id; "" omits it
	Attrs    map[string]string // further attributes: {"deployment.environment.name": "prod"}
}

const scope = "github.com/seed1158cd35/weir"

// encode appends an ExportTraceServiceRequest with the resource and the spans.
func (r *resource) encode(b []byte, spans []trace.Span) []byte {
	return message(b, 1, func(b []byte) []byte { // ResourceSpans
		b = append(b, r.head...)
		b = message(b, 2, func(b []byte) []byte { // ScopeSpans
			b = append(b, r.scope...)
			for i := range spans {
				b = message(b, 2, func(b []byte) []byte { return appendSpan(b, &spans[i]) })
			}
			return text(b, 3, trace.SchemaURL)
		})
		return text(b, 3, trace.SchemaURL)
	})
}

// A resource is a Resource in encoded form.
type resource struct{ head, scope []byte }

func newResource(of Resource) *resource {
	r := new(resource)
	if of.Service == "" {
		of.Service = "weir"
	}
	r.head = message(nil, 1, func(b []byte) []byte {
		b = keyText(b, 1, "service.name", of.Service)
		b = keyText(b, 1, "service.version", of.Version)
		b = keyText(b, 1, "service.instance.id", of.Instance)
		for _, k := range sorted(of.Attrs) {
			b = keyText(b, 1, k, of.Attrs[k])
		}
		return b
	})
	r.scope = message(nil, 1, func(b []byte) []byte { return text(text(b, 1, scope), 2, of.Version) })
	return r
}

// Bits of a span's flags. The low eight have the meaning of traceparent's flags.
const (
	flagSampled    = 1
	flagKnowsWhere = 1 << 8 // flagRemote is valid
	flagRemote     = 1 << 9 // the parent belongs to another program
)

const statusError = 2

func appendSpan(b []byte, s *trace.Span) []byte {
	b = raw(b, 1, s.Trace[:])
	b = raw(b, 2, s.ID[:])
	b = text(b, 3, s.State)
	if s.Parent != (trace.SpanID{}) {
		b = raw(b, 4, s.Parent[:])
	}
	b = text(b, 5, s.Name)
	b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), uint64(s.Kind))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), uint64(s.Start.UnixNano()))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 8, protowire.Fixed64Type), uint64(s.End.UnixNano()))
	for i := range s.Attrs {
		b = message(b, 9, func(b []byte) []byte { return appendAttr(b, &s.Attrs[i]) })
	}
	if s.Failed {
		b = message(b, 15, func(b []byte) []byte {
			b = text(b, 2, s.Message)
			return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), statusError)
		})
	}
	flags := uint32(flagSampled | flagKnowsWhere) // without flagSampled, some receivers drop the span
	if s.Remote {
		flags |= flagRemote
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), flags)
}

func appendAttr(b []byte, a *trace.Attr) []byte {
	b = text(b, 1, a.Key)
	return message(b, 2, func(b []byte) []byte {
		switch a.Is {
		case trace.IsBool:
			return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), uint64(a.Number))
		case trace.IsNumber:
			return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(a.Number))
		case trace.IsFloat:
			return protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), math.Float64bits(a.Float))
		case trace.IsTexts:
			return message(b, 5, func(b []byte) []byte {
				for _, s := range a.Texts {
					b = message(b, 1, func(b []byte) []byte { return appendText(b, s) })
				}
				return b
			})
		}
		return appendText(b, a.Text)
	})
}

func appendText(b []byte, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), valid(s))
}

// keyText appends a text attribute unless the value is empty.
func keyText(b []byte, field protowire.Number, key, value string) []byte {
	if value == "" {
		return b
	}
	return message(b, field, func(b []byte) []byte { return appendAttr(b, &trace.Attr{Key: key, Text: value}) })
}

// message appends an embedded message. The length before it is unknown until it is written, so message reserves three bytes,
// which is valid protobuf and enough for 2 MiB. Longer messages are moved by one or two bytes.
func message(b []byte, field protowire.Number, write func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	at := len(b)
	b = append(b, 0, 0, 0)
	b = write(b)
	n := len(b) - at - 3
	if n >= 1<<21 {
		var size [10]byte
		long := protowire.AppendVarint(size[:0], uint64(n))
		b = append(b, long[3:]...)
		copy(b[at+len(long):], b[at+3:at+3+n])
		copy(b[at:], long)
		return b
	}
	b[at], b[at+1], b[at+2] = byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)
	return b
}

func raw(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// text appends a text field unless it is empty.
func text(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), valid(s))
}
