package trace

import (
	"encoding/hex"
	"net/http"
	"strings"
)

// Header fields that carry a trace between programs, in canonical form: W3C Trace Context (level 1) and X-Ray.
const (
	parentField = "Traceparent"
	stateField  = "Tracestate"
	xrayField   = "X-Amzn-Trace-Id"
)

// mostState is the maximum length of a tracestate that is passed on. W3C requires at least 512 bytes and allows dropping longer
// ones.
const mostState = 512

// A Parent is the span of another program that contains a call. The zero Parent means no parent.
type Parent struct {
	Trace   ID
	Span    SpanID
	Said    bool // Sampled is known
	Sampled bool
	State   string // tracestate
}

// The same fields as keys of gRPC metadata.
const (
	parentKey = "traceparent"
	stateKey  = "tracestate"
	xrayKey   = "x-amzn-trace-id"
)

// readParent returns the parent in a header: from traceparent, or, if there is none and xray is set, from X-Amzn-Trace-Id.
// Malformed values are ignored.
func readParent(h map[string][]string, xray bool) Parent {
	return readNamed(h, xray, parentField, stateField, xrayField)
}

func readNamed(h map[string][]string, xray bool, parent, state, amzn string) Parent {
	if v := h[parent]; len(v) == 1 {
		if p, ok := parseParent(v[0]); ok {
			p.State = stateOf(h[state])
			return p
		}
	}
	if v := h[amzn]; xray && len(v) == 1 {
		return parseXRay(v[0])
	}
	return Parent{}
}

// parentLength is the length of a traceparent of version 00: version, trace, span and flags in hexadecimal.
const parentLength = 2 + 1 + 32 + 1 + 16 + 1 + 2

// parseParent parses a traceparent. Later versions may have more fields after another dash.
func parseParent(s string) (p Parent, ok bool) {
	var version, flags [1]byte
	switch {
	case len(s) < parentLength || len(s) > mostState || s[2] != '-' || s[35] != '-' || s[52] != '-':
		return p, false
	case !lowHex(version[:], s[:2]) || !lowHex(p.Trace[:], s[3:35]) || !lowHex(p.Span[:], s[36:52]) || !lowHex(flags[:], s[53:55]):
		return Parent{}, false
	case version[0] == 0xff, version[0] == 0 && len(s) > parentLength, len(s) > parentLength && s[parentLength] != '-':
		return Parent{}, false
	case p.Trace == ID{}, p.Span == SpanID{}:
		return Parent{}, false
	}
	p.Said, p.Sampled = true, flags[0]&1 != 0
	return p, true
}

// lowHex parses lower-case hexadecimal digits, which W3C requires, into bytes.
func lowHex(to []byte, s string) bool {
	var bad byte
	for i := range to {
		a, b := digits[s[2*i]], digits[s[2*i+1]]
		to[i] = a<<4 | b&15
		bad |= a | b
	}
	return bad < 16
}

// digits maps lower-case hexadecimal digits to their values. 255 is not a digit.
var digits = func() (d [256]byte) {
	for i := range d {
		d[i] = 255
	}
	for i, c := range []byte("0123456789abcdef") {
		d[c] = byte(i)
	}
	return d
}()

// stateOf returns the tracestate to pass on. It joins several fields, and drops values that are too long or invalid in a header.
func stateOf(values []string) string {
	if len(values) == 0 {
		return ""
	}
	s := values[0]
	if len(values) > 1 {
		s = strings.Join(values, ",")
	}
	if len(s) > mostState {
		return ""
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return ""
		}
	}
	return s
}

func appendParent(b []byte, trace ID, span SpanID, sampled bool) []byte {
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, span[:])
	if sampled {
		return append(b, "-01"...)
	}
	return append(b, "-00"...)
}

// parseXRay parses X-Amzn-Trace-Id: "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1", in any order,
// possibly with other fields between. Without a Parent, the trace of Root is continued.
func parseXRay(s string) (p Parent) {
	if len(s) > mostState {
		return p
	}
	for field := range strings.SplitSeq(s, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Root":
			if p.Trace != (ID{}) || !xrayID(&p.Trace, value) {
				return Parent{}
			}
		case "Parent":
			if len(value) != 16 || !lowHex(p.Span[:], value) {
				return Parent{}
			}
		case "Sampled":
			p.Said, p.Sampled = value == "0" || value == "1", value == "1"
		}
	}
	if p.Trace == (ID{}) {
		return Parent{}
	}
	return p
}

func xrayID(i *ID, s string) bool {
	return len(s) == 35 && s[:2] == "1-" && s[10] == '-' && lowHex(i[:4], s[2:10]) && lowHex(i[4:], s[11:]) && *i != (ID{})
}

// XRay returns the ID in X-Ray's form.
func (i ID) XRay() string { return string(appendXRayID(nil, i)) }

func appendXRayID(b []byte, i ID) []byte {
	b = append(b, "1-"...)
	b = hex.AppendEncode(b, i[:4])
	b = append(b, '-')
	return hex.AppendEncode(b, i[4:])
}

func appendXRay(b []byte, trace ID, span SpanID, sampled bool) []byte {
	b = append(b, "Root="...)
	b = appendXRayID(b, trace)
	b = append(b, ";Parent="...)
	b = hex.AppendEncode(b, span[:])
	if sampled {
		return append(b, ";Sampled=1"...)
	}
	return append(b, ";Sampled=0"...)
}

// signed returns the names of the fields that the request's signature (AWS version 4) covers, "host;x-amz-date", or "" without a
// signature. Changing these fields would invalidate the signature.
func signed(h http.Header) string {
	v := h["Authorization"]
	if len(v) == 0 || !strings.HasPrefix(v[0], "AWS4-") {
		return ""
	}
	_, names, _ := strings.Cut(v[0], "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	return names
}

// has reports whether names, separated by semicolons, includes a name.
func has(names, name string) bool {
	if names == "" {
		return false
	}
	for n := range strings.SplitSeq(names, ";") {
		if strings.EqualFold(strings.TrimSpace(n), name) {
			return true
		}
	}
	return false
}
