package httpx

import (
	"net/http"
	"net/url"
	"strings"
)

// conditional reports whether a request writes under a condition that its own success makes false. If it is repeated after it
// succeeded, it is refused, as if another caller had been first. Conditions are headers (If-Match, x-amz-if-match-size,
// x-goog-if-generation-match, WebDAV's If) or query parameters.
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
		name, value, _ := strings.Cut(q, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if conditionalParameter(name, value) {
			return true
		}
	}
	return false
}

// conditionalParameter reports whether a query parameter is such a condition: ifGenerationMatch (Google), if_seq_no
// (Elasticsearch), if-match, or a name without "if".
func conditionalParameter(name, value string) bool {
	if len(name) > 2 && strings.EqualFold(name[:2], "if") && (name[2] == '-' || name[2] == '_' || 'A' <= name[2] && name[2] <= 'Z') {
		return true
	}
	switch name = strings.ToLower(name); name {
	case "cas", "rev", "prevexist", "previndex", "prevvalue": // Consul, CouchDB, etcd
		return true
	case "op_type": // Elasticsearch
		return value == "create"
	case "version_type": // Elasticsearch: an external version must be newer than the stored one
		return strings.HasPrefix(value, "external") && !strings.HasSuffix(value, "gte")
	}
	return strings.HasPrefix(name, "ifgeneration") || strings.HasPrefix(name, "ifmetageneration") || strings.HasPrefix(name, "ifsource") ||
		strings.Contains(name, "-if-")
}
