package httpx

import (
	"net/http"
	"net/url"
	"strings"
)

// readers are prefixes of the names of actions that change nothing.
var readers = [...]string{
	"Describe", "Get", "List", "Head", "BatchGet", "Query", "Scan", "Search", "Select", "Lookup", "Simulate", "Validate",
	"Estimate", "Count", "Check", "TestMetricFilter", "Filter", "Preview", "Verify",
}

// Acts reports whether a GET or HEAD request may change something, because its query has an Action, as in the query protocol
// of AWS, Alibaba Cloud and others: ?Action=SendMessage. Names of actions and of the parameter are compared in their case.
func Acts(method string, u *url.URL) bool {
	if method != http.MethodGet && method != http.MethodHead && method != "" || !strings.Contains(u.RawQuery, "ction") && !strings.Contains(u.RawQuery, "%") {
		return false
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if unescaped(name) == "Action" && !reads(unescaped(value)) {
			return true
		}
	}
	return false
}

func reads(action string) bool {
	for _, p := range readers {
		if strings.HasPrefix(action, p) {
			return true
		}
	}
	return false
}

func unescaped(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}
