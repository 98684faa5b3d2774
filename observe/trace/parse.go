package trace

import (
	"errors"
	"strings"
)

// ParseID parses a trace ID in any of its usual forms: 32 hexadecimal digits, X-Ray's form
// ("1-5759e988-bd862e3fe1be46a994272793"), or the value of either header field.
func ParseID(s string) (i ID, err error) {
	text := strings.ToLower(strings.TrimSpace(s))
	if p, ok := parseParent(text); ok {
		return p.Trace, nil
	}
	if p := parseXRay(strings.Replace(text, "root=", "Root=", 1)); p.Trace != (ID{}) {
		return p.Trace, nil
	}
	if xrayID(&i, text) || len(text) == 32 && lowHex(i[:], text) && i != (ID{}) {
		return i, nil
	}
	return ID{}, errors.New("not a trace ID: want 32 hexadecimal digits, or the form 1-5759e988-bd862e3fe1be46a994272793")
}
