package envoy

import (
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

func TestWildcardMatchesWhereverItStands(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{"/api*v1", "/api/x/v1", true}, {"/api*v1", "/apiv1", true}, {"/api*v1", "/api/x/v2", false}, {"/api*v1", "/api*v1", true},
		{"*.png", "a.png", true}, {"*.png", ".png", true}, {"*.png", "a.png?x", false}, {"/web*", "/web/x", true}, {"/web*", "/we", false},
		{"*", "", true}, {"a*b*c", "a1b2c", true}, {"a*b*c", "abc", true}, {"a*b*c", "acb", false}, {"a*b*b", "ab", false}, {"a*b*b", "abb", true},
		{"ab*ba", "aba", false}, {"**", "x", true}, {"a**b", "ab", true}, {"*aab", "aaab", true}, {"*a*", "bbb", false},
	} {
		rules, err := Parse("rules.yaml", []byte(`domain: d
descriptors:
  - key: path
    value: "`+c.pattern+`"
    rate_limit: {unit: hour, requests_per_unit: 1}
`))
		if err != nil {
			t.Fatal(err)
		}
		m := rules.match("d", &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: "path", Value: c.value}}}, nil)
		if got := m.quota != nil; got != c.want {
			t.Errorf("%s of %s: limited %v, want %v", c.pattern, c.value, got, c.want)
		}
	}
}

func TestMetadataOfAnyFormIsLoaded(t *testing.T) {
	for _, form := range []string{"{team: cart, tier: 2}", "[a, {b: c}]", "text", "3", "", "\n      owner:\n        - a\n        - {b: [1, 2]}"} {
		rules, err := Parse("rules.yaml", []byte("domain: d\ndescriptors:\n  - key: k\n    metadata: "+form+"\n    rate_limit: {unit: hour, requests_per_unit: 1}\n"))
		if err != nil || rules.Limits() != 1 {
			t.Errorf("metadata: %s: %v", form, err)
		}
	}
}

// Envoy's service matches a key that ends with a star by its beginning. A rule for the literal key would limit no request.
func TestWildcardInKeyIsRefused(t *testing.T) {
	for _, key := range []string{"tenant*", "*", "a*b"} {
		if _, err := Parse("rules.yaml", []byte("domain: d\ndescriptors:\n  - key: \""+key+"\"\n    rate_limit: {unit: hour, requests_per_unit: 1}\n")); err == nil {
			t.Errorf("key %q was loaded", key)
		}
	}
}
