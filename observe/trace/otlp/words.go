package otlp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// valid returns s as UTF-8. Receivers reject a whole request because of one invalid text.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// rejected parses an ExportTraceServiceResponse, or an ExportMetricsServiceResponse, and returns how many spans or points were
// rejected and why. Malformed responses count as complete success.
func rejected(b []byte) (n int64, why string) {
	each(b, func(field protowire.Number, _ uint64, v []byte) {
		if field != 1 {
			return
		}
		each(v, func(field protowire.Number, number uint64, v []byte) {
			switch field {
			case 1:
				n = int64(number)
			case 2:
				why = string(v)
			}
		})
	})
	return n, why
}

// each calls tell for every field of a message that is a number or text.
func each(b []byte, tell func(protowire.Number, uint64, []byte)) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		var number uint64
		var v []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return
		}
		tell(field, number, v)
		b = b[n:]
	}
}

// partly returns the number of rejected items and an error, or nil if none was rejected.
func partly(answer []byte) (int64, error) {
	n, why := rejected(answer)
	if n <= 0 {
		return 0, nil
	}
	return n, fmt.Errorf("%d were not accepted: %q", n, why)
}
