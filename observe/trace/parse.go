package trace

import (
	"errors"
	"strings"
)

// ParseID reads the ID of a trace as people have it: 32 hexadecimal digits, as X-Ray writes it ("1-5759e988-bd862e3fe1be46a994272793"),
// or in the header field of either.
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
