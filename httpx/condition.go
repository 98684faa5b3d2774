package httpx

import (
	"net/http"
	"net/url"
	"strings"
)

// conditional reports whether a request writes under a condition that its own success makes false. If it is repeated after it
// succeeded, it is refused, as if another caller had been first. Conditions are headers (If-Match, x-amz-if-match-size,
// x-goog-if-generation-match, WebDAV's If), query parameters, or Elasticsearch's path _create.
func conditional(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "":
		return false
	}
	for name, values := range r.Header {
		if conditionalHeader(strings.ReplaceAll(strings.ToLower(name), "_", "-"), values) {
			return true
		}
	}
	if strings.Contains(r.URL.Path, "/_create/") {
		return true
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

// conditionalHeader reports whether a header is such a condition. Its name is in lower case.
func conditionalHeader(name string, values []string) bool {
	switch {
	case strings.HasPrefix(name, "if-"), strings.Contains(name, "-if-"), name == "if", strings.HasPrefix(name, "x-ms-blob-condition-"), name == "x-amz-write-offset-bytes":
		return true
	case name == "upload-offset", expects(name): // tus; event stores
		return true
	case len(values) == 0:
		return false
	case name == "overwrite": // WebDAV
		return strings.EqualFold(values[0], "F")
	}
	return strings.HasSuffix(name, "-forbid-overwrite") && strings.EqualFold(values[0], "true") // Alibaba Cloud, Tencent Cloud
}

// expects reports whether a name in lower case refers to the version that a write expects: X-Expected-Version,
// ES-ExpectedVersion, expected_revision.
func expects(name string) bool {
	_, after, ok := strings.Cut(name, "expected")
	return ok && (strings.HasSuffix(after, "version") || strings.HasSuffix(after, "revision") || strings.HasSuffix(after, "etag"))
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
	case "overwrite": // HDFS and others
		return strings.EqualFold(value, "false")
	case "op_type": // Elasticsearch
		return value == "create"
	case "version_type": // Elasticsearch: an external version must be newer than the stored one
		return strings.HasPrefix(value, "external") && !strings.HasSuffix(value, "gte")
	}
	return strings.HasPrefix(name, "ifgeneration") || strings.HasPrefix(name, "ifmetageneration") || strings.HasPrefix(name, "ifsource") ||
		strings.Contains(name, "-if-") || expects(name)
}
