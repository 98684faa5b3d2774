package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestCredentialContainsAllKeyHeaders tells callers apart that share one of two headers.
func TestCredentialContainsAllKeyHeaders(t *testing.T) {
	of := func(headers ...string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return credentialOf(r, guest{}, "/")
	}
	seen := map[string]int{}
	for i, headers := range [][]string{
		{"Authorization", "Bearer a"},
		{"X-Api-Key", "a"},
		{"Authorization", "Bearer a", "X-Api-Key", "k"},
		{"Authorization", "Bearer b", "X-Api-Key", "k"},
		{"Authorization", "Bearer a", "X-Api-Key", "l"},
		{"Authorization", "Bearer a", "Api-Key", "k", "X-Goog-Api-Key", "m"},
	} {
		own := of(headers...)
		if first, ok := seen[own]; own == "" || ok && i != first+1 {
			t.Errorf("%v has the credential of %d", headers, first)
		}
		seen[own] = i
		if again := of(headers...); again != own {
			t.Errorf("%v: %q, then %q", headers, own, again)
		}
	}
}
