package decide

import (
	"net/http"
	"strings"
	"testing"
)

// A user's remaining units and reset time are visible to callers that may call for the user. Reading consumes
// nothing.
func TestLimitsOfOneKey(t *testing.T) {
	u := upstream(t, "api", policy())
	s := neighbours(t, Rights{}, u)
	s.Rights = func(caller string) Rights {
		return map[string]Rights{
			"a": {Keys: map[string][]string{"tenant": {"acme"}}},
			"b": {Keys: map[string][]string{"tenant": {"acme", "beta"}}},
		}[caller]
	}
	h := s.Handler()
	permit(t, h, `{"upstream":"api","operation":"put","keys":{"tenant":"acme"}}`, asA)
	for _, c := range []struct {
		query, as, key string
		left           int64
		code           int
		says           string
	}{
		{"", asA, "acme", 1, 200, ""}, // its own, by default
		{"&tenant=acme", asA, "acme", 1, 200, ""},
		{"&tenant=beta", asA, "", 0, 403, "this caller may not use"},
		{"", asB, "", 0, 200, ""}, // ambiguous
		{"&tenant=beta", asB, "beta", 2, 200, ""},
		{"&tenant=beta&operation=get", asB, "", 0, 200, ""}, // the limit does not count this operation
		{"&tenant=a%00", asB, "", 0, 400, "has a control character"},
		{"&tenent=acme", asB, "", 0, 400, "unknown parameter; want upstream, operation, tenant"},
	} {
		a := ask(t, h, "GET", "/v1/limits?upstream=api"+c.query, "", c.as)
		if a.Code != c.code || !strings.Contains(a.Error.Message, c.says) {
			t.Errorf("%s: got %d %s, want %d %s", c.query, a.Code, a.Body, c.code, c.says)
			continue
		}
		var got limitView
		for _, l := range a.Limits {
			if l.Limit == "per-tenant" {
				got = l
			}
		}
		if got.Key != c.key || got.Left != c.left || c.key == "acme" && (got.ResetMS < 1 || got.ResetAt.IsZero()) {
			t.Errorf("%s: got %+v, want %d left of %q, and when it resets", c.query, got, c.left, c.key)
		}
	}
	for _, v := range u.Look(10).Limits {
		if v.Key == "beta" {
			t.Error("a key was made by looking at it")
		}
	}
	s.Scopes = func(string) Scopes { return Scopes{Caller: []string{"tenant"}} }
	s.Rights = nil
	if a := ask(t, h, "GET", "/v1/limits?upstream=api&tenant=a", "", asB); a.Code != http.StatusBadRequest || !strings.Contains(a.Error.Message, "the caller's name") {
		t.Errorf("in another's name: got %d %s", a.Code, a.Body)
	}
}
