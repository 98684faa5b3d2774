package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTokensOfOthers(t *testing.T) {
	const rest = "\nlisten: \":8080\"\nupstreams: {a: {url: https://h, credentials: {Authorization: KEY}}}"
	f := parse(t, "jwt: {jwks: \"https://login.example.com/keys\", issuer: login, audience: weir, scopes: {a: a.write}}"+rest, "KEY=k")
	want := &JWT{URL: "https://login.example.com/keys", Issuer: "login", Audience: "weir", Timeout: 5 * time.Second, Scopes: map[string]string{"a": "a.write"}}
	if !reflect.DeepEqual(f.Callable.JWT, want) {
		t.Errorf("%+v, want %+v", f.Callable.JWT, want)
	}
	for fields, says := range map[string]string{
		"issuer: login, audience: weir":                                                    "has no jwks",
		"jwks: \"https://h/keys\", audience: weir":                                         "has no issuer",
		"jwks: \"https://h/keys\", issuer: login":                                          "has no audience",
		"jwks: \"http://h/keys\", issuer: login, audience: weir":                           "use https",
		"jwks: \"https://a:b@h/keys\", issuer: login, audience: weir":                      "not contain a user name",
		"jwks: keys, issuer: login, audience: weir":                                        "is not a URL",
		"jwks: \"http://127.0.0.1:1/keys\", issuer: login, audience: weir, scopes: {b: x}": "unknown upstream",
	} {
		_, err := Parse("weir.yaml", []byte("jwt: {"+fields+"}"+rest), nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", fields, err, says)
		}
	}
}
