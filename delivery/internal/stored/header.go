package stored

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
)

// WriteHeader returns the stored form of a header: lines as in HTTP, sorted by name. Values keep their bytes, which
// need not be UTF-8.
func WriteHeader(h http.Header) (string, error) {
	if len(h) == 0 {
		return "", nil
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			if strings.ContainsAny(name, ":\r\n") || strings.ContainsAny(v, "\r\n") {
				return "", &delivery.FieldError{Field: strings.ToValidUTF8(name, "?"), Reason: "is not a single-line header"}
			}
			b.WriteString(name + ": " + v + "\n")
		}
	}
	return b.String(), nil
}

var errHeader = errors.New("its stored request has a header that cannot be read")

func ReadHeader(text string) (http.Header, error) {
	var h http.Header
	for line := range strings.Lines(text) {
		name, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok || name == "" {
			return nil, errHeader
		}
		if h == nil {
			h = make(http.Header)
		}
		h[name] = append(h[name], v)
	}
	return h, nil
}
