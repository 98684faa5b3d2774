package trace

import (
	"encoding/hex"
	"net/http"
	"strings"
)

// The fields that carry a trace from one program to the next, in canonical form: those of W3C's Trace Context
// (level 1), and X-Ray's.
const (
	parentField = "Traceparent"
	stateField  = "Tracestate"
	xrayField   = "X-Amzn-Trace-Id"
)

// mostState is how much of a tracestate is passed on. W3C wants 512 bytes at least; a longer one may be dropped.
const mostState = 512

// A Parent is the span of another program that a call is made within. The zero Parent is none.
type Parent struct {
	Trace   ID
	Span    SpanID
	Said    bool // whether Sampled is known
	Sampled bool
	State   string // tracestate
}

// The same fields as gRPC has them in its metadata.
const (
	parentKey = "traceparent"
	stateKey  = "tracestate"
	xrayKey   = "x-amzn-trace-id"
)

// readParent is the parent that a header tells of: that of traceparent, or else, if xray, that of X-Amzn-Trace-Id. What is
// malformed tells of none.
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

// parentLength is that of a traceparent of version 00: version, trace, span and flags, in hexadecimal.
const parentLength = 2 + 1 + 32 + 1 + 16 + 1 + 2

// parseParent reads a traceparent. One of a later version may have more behind another dash.
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

// lowHex reads hexadecimal digits in small letters, as W3C wants them, into as many bytes as they are.
func lowHex(to []byte, s string) bool {
	var bad byte
	for i := range to {
		a, b := digits[s[2*i]], digits[s[2*i+1]]
		to[i] = a<<4 | b&15
		bad |= a | b
	}
	return bad < 16
}

// digits are the values of hexadecimal digits in small letters; 255 is no digit.
var digits = func() (d [256]byte) {
	for i := range d {
		d[i] = 255
	}
	for i, c := range []byte("0123456789abcdef") {
		d[c] = byte(i)
	}
	return d
}()

// stateOf is a tracestate as it is passed on: fields of one name are joined; what is too long, or cannot stand in a
// header, is dropped.
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

// appendParent writes a traceparent.
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

// parseXRay reads X-Amzn-Trace-Id: "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1", in any
// order, with fields of others between. Without a Parent its Root is gone on with.
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

// xrayID reads a trace's ID as X-Ray writes it.
func xrayID(i *ID, s string) bool {
	return len(s) == 35 && s[:2] == "1-" && s[10] == '-' && lowHex(i[:4], s[2:10]) && lowHex(i[4:], s[11:]) && *i != (ID{})
}

// XRay is the ID as X-Ray writes it.
func (i ID) XRay() string { return string(appendXRayID(nil, i)) }

func appendXRayID(b []byte, i ID) []byte {
	b = append(b, "1-"...)
	b = hex.AppendEncode(b, i[:4])
	b = append(b, '-')
	return hex.AppendEncode(b, i[4:])
}

// appendXRay writes X-Amzn-Trace-Id.
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

// signed are the names of the fields that a request's signature (AWS's, version 4) is of, which then must stay as they
// are: "host;x-amz-date", "" if there is none.
func signed(h http.Header) string {
	v := h["Authorization"]
	if len(v) == 0 || !strings.HasPrefix(v[0], "AWS4-") {
		return ""
	}
	_, names, _ := strings.Cut(v[0], "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	return names
}

// has reports whether a name is among those that are signed.
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
