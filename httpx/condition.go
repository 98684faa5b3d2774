package httpx

import (
	"net/http"
	"strings"
)

// conditional reports whether a request writes under a condition that its own success makes false: repeated after it was
// done, it would be refused as though somebody else had been first. Conditions are headers (If-Match, x-amz-if-match-size,
// x-goog-if-generation-match, the If of WebDAV) or parameters of the query (ifGenerationMatch).
func conditional(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "":
		return false
	}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "if-") || strings.Contains(name, "-if-") || name == "if" ||
			strings.HasPrefix(name, "x-ms-blob-condition-") || name == "x-amz-write-offset-bytes" {
			return true
		}
	}
	for q := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(strings.ToLower(q), "=")
		if strings.HasPrefix(name, "ifgeneration") || strings.HasPrefix(name, "ifmetageneration") || strings.HasPrefix(name, "ifsource") ||
			strings.HasPrefix(name, "if-") || strings.Contains(name, "-if-") {
			return true
		}
	}
	return false
}
