package classify

import (
	"net/http"
	"testing"
)

func TestNeedsBody(t *testing.T) {
	tests := []struct {
		method string
		status int
		header http.Header
		want   bool
	}{
		{"GET", 200, nil, false},
		{"POST", 200, headers("Content-Type: application/json"), false},
		{"POST", 200, headers("Content-Type: text/event-stream"), false},
		{"POST", 200, headers("Content-Type: application/xml"), true},
		{"PUT", 200, headers("Content-Type: application/xml; charset=utf-8", "Content-Length: 300"), true},
		{"PUT", 200, headers("Content-Type: application/xml", "Content-Length: 70000"), false},
		{"PUT", 200, headers("Content-Length: 0"), false},
		{"GET", 200, headers("Content-Type: application/xml"), false},
		{"GET", 304, nil, false},
		{"GET", 404, headers("Content-Type: application/xml"), true},
		{"POST", 400, headers("Content-Type: application/x-amz-json-1.0"), true},
		{"POST", 429, headers("Content-Type: application/problem+json"), true},
		{"POST", 429, nil, true},
		{"POST", 429, headers("Content-Length: 0"), false},
		{"POST", 502, headers("Content-Type: text/html"), false},
		{"HEAD", 503, headers("Content-Type: application/xml"), false},
		{"POST", 429, headers("Content-Type: application/json", "Content-Encoding: gzip"), true},
		{"POST", 429, headers("Content-Type: application/json", "Content-Encoding: br"), true},
		{"POST", 429, headers("Content-Type: application/json", "Content-Encoding: zstd"), true},
		{"POST", 429, headers("Content-Type: application/json", "Content-Encoding: deflate"), true},
		{"POST", 429, headers("Content-Type: application/json", "Content-Encoding: gzip, br"), true},
		{"POST", 429, headers("Content-Type: application/json", "Content-Encoding: gzip, gzip, gzip, gzip"), true},
		{"POST", 429, headers("Content-Type: application/json", "Content-Encoding: compress"), true},
		{"GET", 429, headers("Content-Type: text/html"), true},
		{"GET", 403, headers("Content-Type: text/html; charset=utf-8"), true},
	}
	for _, tt := range tests {
		if got := NeedsBody(tt.method, tt.status, tt.header); got != tt.want {
			t.Errorf("NeedsBody(%s, %d, %v) = %v, want %v", tt.method, tt.status, tt.header, got, tt.want)
		}
	}
}
