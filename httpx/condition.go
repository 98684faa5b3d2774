package httpx

import (
	"net/http"
	"net/url"
	"strings"
)

// conditional reports whether a request writes under a condition that its own success makes false: repeated after it was
// done, it would be refused as though somebody else had been first. Conditions are headers (If-Match, x-amz-if-match-size,
// x-goog-if-generation-match, the If of WebDAV, x-oss-forbid-overwrite) or parameters of the query (ifGenerationMatch).
func conditional(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "":
		return false
	}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "if-") || strings.Contains(name, "-if-") || name == "if" ||
			strings.HasPrefix(name, "x-ms-blob-condition-") || name == "x-amz-write-offset-bytes" || strings.HasSuffix(name, "-forbid-overwrite") {
			return true
		}
	}
	for q := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(q, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if isConditionParameter(strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// isConditionParameter reports whether a parameter of the query, in small letters, is a condition: of Google Cloud Storage,
// Elasticsearch, CouchDB and Consul.
func isConditionParameter(name string) bool {
	switch name {
	case "if_seq_no", "if_primary_term", "rev", "cas":
		return true
	}
	return strings.HasPrefix(name, "ifgeneration") || strings.HasPrefix(name, "ifmetageneration") || strings.HasPrefix(name, "ifsource") ||
		strings.HasPrefix(name, "if-") || strings.Contains(name, "-if-")
}
