package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func TestRemoteAddressIsAKey(t *testing.T) {
	for in, want := range map[string]string{"10.0.0.1:5": "10.0.0.1", "[::1]:5": "::1", "@": "@"} {
		if got := (httpx.Source{Kind: "remote"}).Reader()(&http.Request{RemoteAddr: in}); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestSecretsAreKeysByTheirHash(t *testing.T) {
	r := &http.Request{URL: &url.URL{RawQuery: "key=secret&tenant=acme&API_KEY=secret"}, Header: http.Header{"X-Api-Key": {"secret"}, "X-Tenant": {"acme"}}}
	const hash = "sha256:2bb80d537b1da3e3"
	for s, want := range map[httpx.Source]string{
		{Kind: httpx.FromQuery, Name: "key"}: hash, {Kind: httpx.FromQuery, Name: "API_KEY"}: hash, {Kind: httpx.FromHeader, Name: "x-api-key"}: hash,
		{Kind: httpx.FromQuery, Name: "tenant"}: "acme", {Kind: httpx.FromHeader, Name: "x-tenant"}: "acme", {Kind: httpx.FromQuery, Name: "none"}: "", {Kind: httpx.FromHeader, Name: "Authorization"}: "",
	} {
		if got := s.Veiled(nil, "who")(r); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

func TestCredentialsAreKnownByTheirNames(t *testing.T) {
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "apikey", "key", "X-Goog-Api-Key",
		"X-Auth-Token", "X-Access-Token", "access_token", "X-Vault-Token", "Ocp-Apim-Subscription-Key", "X-Amz-Security-Token",
		"X-Amz-Credential", "X-Amz-Signature", "sig", "AWSAccessKeyId", "client_secret", "password", "passwd", "pass",
		"PHPSESSION", "session_id", "connect.sid", "X-Otp", "X-Jwt-Assertion", "X-CSRF-Token", "authenticate",
	} {
		if !veil.Secret(name) {
			t.Errorf("%s is shown", name)
		}
	}
	for _, name := range []string{
		"X-Tenant", "X-Tenant-Id", "tenant", "account", "X-Account-Id", "User-Agent", "X-User", "u", "id", "Host", "region", "route",
		"X-Forwarded-For", "design", "passenger", "side", "X-Customer",
	} {
		if veil.Secret(name) {
			t.Errorf("%s is hashed", name)
		}
	}
}

// Keys are read from the request as received, including headers that are not forwarded.
func TestKeysAreReadBeforeHeadersAreDropped(t *testing.T) {
	w := newWire(t)
	for name, field := range map[string][]string{
		"X-Forwarded-For":     {"X-Forwarded-For: %s"},
		"Forwarded":           {"Forwarded: %s"},
		"Proxy-Authorization": {"Proxy-Authorization: %s"},
		"X-Forwarded-User":    {"X-Forwarded-User: %s"},
		"X-Tenant":            {"Connection: X-Tenant", "X-Tenant: %s"},
	} {
		u := up(w.url, brisk())
		u.Policy.Limits = []limit.Limit{{Name: "l", Scope: "k", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 5}}}
		u.Keys = map[string]httpx.Source{"k": {Kind: httpx.FromHeader, Name: name}}
		p := newProxy(t, u)
		address := listen(t, p)
		var want []string
		for _, value := range []string{"for=one", "for=two"} {
			fields := slices.Clone(field)
			fields[len(fields)-1] = fmt.Sprintf(fields[len(fields)-1], value)
			if resp := say(t, address, get("/", fields...)); resp.StatusCode != http.StatusOK {
				t.Fatal(resp.Status)
			}
			want = append(want, httpx.Source{Kind: httpx.FromHeader, Name: name}.Veiled(nil, "k")(&http.Request{Header: http.Header{name: {value}}}))
		}
		var got []string
		for _, v := range p.Upstreams()["up"].Look(10).Limits {
			if v.Key != "" {
				got = append(got, v.Key)
			}
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: the keys are %q, want %q", name, got, want)
		}
	}
	for _, head := range w.heads() {
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-User", "Forwarded", "Proxy-Authorization", "X-Tenant"} {
			if got := lines(head, name); len(got) > 0 {
				t.Errorf("%q was sent on", got)
			}
		}
	}
}

func TestTheHostIsAKey(t *testing.T) {
	if got := (httpx.Source{Kind: httpx.FromHeader, Name: "host"}).Reader()(&http.Request{Host: "a.example.com", Header: http.Header{}}); got != "a.example.com" {
		t.Errorf("the host is %q", got)
	}
}

// An upstream cannot set weir's headers. Otherwise a caller could mistake them for weir's.
func TestAnUpstreamCannotSpeakForWeir(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{RefusedHeader, errorHeader, GaveUpHeader, AttemptsHeader, "X-Weir-Whatever"} {
			w.Header().Set(name, "forged")
		}
		w.Header().Set("X-Weirdo", "kept")
	}))
	defer s.Close()
	resp := do(t, "GET", "http://"+listen(t, newProxy(t, up(s.URL, brisk()))), "")
	for name, values := range resp.Header {
		if slices.Contains(values, "forged") {
			t.Errorf("%s: %q came through", name, values)
		}
	}
	if resp.Header.Get("X-Weirdo") != "kept" {
		t.Error("X-Weirdo did not")
	}
}
