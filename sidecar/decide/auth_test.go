package decide

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/refuse"
)

func withLocal(ctx context.Context, addr net.Addr) context.Context {
	return context.WithValue(ctx, http.LocalAddrContextKey, addr)
}

const (
	secretA  = "the-secret-of-team-a"
	secretA2 = "the-next-secret-of-a"
	secretB  = "the-secret-of-team-b"
)

func twoTeams() *auth.Auth {
	return &auth.Auth{Tokens: []auth.Token{
		{Name: "team-a", SHA256: auth.Hash(secretA), Upstreams: []string{"api"}},
		{Name: "team-a", SHA256: auth.Hash(secretA2), Upstreams: []string{"api"}},
		{Name: "team-b", SHA256: auth.Hash(secretB)},
	}}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ header, caller, says string }{
		{"Bearer " + secretA, "team-a", ""},
		{"bearer " + secretA, "team-a", ""},
		{"BEARER  " + secretA + " ", "team-a", ""},
		{"Bearer " + secretA2, "team-a", ""},
		{"Bearer " + secretB, "team-b", ""},
		{"", "", "no token; send"},
		{"Bearer", "", "is not one of the configured tokens"},
		{"Bearer ", "", "is not one of the configured tokens"},
		{"Bearer " + secretA[:19], "", "is not one of the configured tokens"},
		{"Bearer " + secretA + "x", "", "is not one of the configured tokens"},
		{"Bearer " + secretA + " x", "", "is not one of the configured tokens"},
		{secretA, "", "not of the form Bearer TOKEN"},
		{"Basic " + secretA, "", "not of the form Bearer TOKEN"},
	} {
		caller, err := twoTeams().Check(c.header, nil)
		switch {
		case c.says == "" && (err != nil || caller != c.caller):
			t.Errorf("%q: got %q, %v, want %q", c.header, caller, err, c.caller)
		case c.says != "" && (!errors.Is(err, auth.ErrUnauthorized) || !strings.Contains(err.Error(), c.says) || caller != ""):
			t.Errorf("%q: got %q, %v, want %s", c.header, caller, err, c.says)
		case err != nil && strings.Contains(err.Error(), "secret-of"):
			t.Errorf("%q: the error holds the secret: %v", c.header, err)
		}
	}
	for _, a := range []*auth.Auth{nil, {}} {
		if caller, err := a.Check("", nil); caller != "" || err != nil {
			t.Errorf("without tokens: got %q, %v, want everyone let in", caller, err)
		}
	}
}

func TestMay(t *testing.T) {
	a := twoTeams()
	for _, c := range []struct {
		caller, upstream string
		may              bool
	}{{"team-a", "api", true}, {"team-a", "other", false}, {"team-b", "other", true}, {"nobody", "api", false}, {"", "api", false}} {
		if err := a.May(c.caller, c.upstream); (err == nil) != c.may || err != nil && !errors.Is(err, auth.ErrForbidden) {
			t.Errorf("May(%q, %q): got %v, want allowed %v", c.caller, c.upstream, err, c.may)
		}
	}
	if err := (*auth.Auth)(nil).May("", "api"); err != nil {
		t.Errorf("without auth: got %v", err)
	}
}

// Every way of printing a token shows only its name.
func TestTokensPrintAsTheirNames(t *testing.T) {
	token := auth.Token{Name: "team-a", SHA256: auth.Hash(secretA)}
	hash := fmt.Sprint(auth.Hash(secretA)[0], " ", auth.Hash(secretA)[1])
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "token", token)
	asJSON, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		fmt.Sprint(token), fmt.Sprintf("%v %+v %#v %s", token, token, token, token), fmt.Sprintf("%v", []auth.Token{token}),
		fmt.Sprintf("%+v", &auth.Auth{Tokens: []auth.Token{token}}), log.String(), string(asJSON),
	} {
		if !strings.Contains(s, "team-a") || strings.Contains(s, hash) || strings.Contains(strings.ToLower(s), "sha256") {
			t.Errorf("a token printed as %s", s)
		}
	}
}

// A caller sees only its own upstreams, and cannot distinguish other upstreams from missing ones.
func TestTokensOverHTTP(t *testing.T) {
	s := server(t, upstream(t, "api", policy()), upstream(t, "other", policy()))
	s.Auth = twoTeams
	h := s.Handler()
	a, b := "Authorization: Bearer "+secretA, "Authorization: Bearer "+secretB
	for _, c := range []struct {
		upstream, header string
		status           int
		code, says       string
	}{
		{"api", "", 401, refuse.Unauthorized, "no token; send"},
		{"api", "Authorization: Bearer wrong", 401, refuse.Unauthorized, "is not one of the configured tokens"},
		{"api", a, 200, "", ""},
		{"other", a, 403, refuse.Forbidden, `the token of "team-a" may not use upstream "other"`},
		{"absent", a, 403, refuse.Forbidden, `may not use upstream "absent"`},
		{"other", b, 200, "", ""},
		{"absent", b, 404, refuse.NotFound, "is unknown"},
	} {
		got := acquire(t, h, `{"upstream":"`+c.upstream+`"}`, c.header)
		if got.Code != c.status || !got.says(c.code, c.says) {
			t.Errorf("%s with %s: got %d %s, want %d %s", c.upstream, c.header, got.Code, got.Body, c.status, c.says)
		}
		if challenge := got.Header().Get("WWW-Authenticate"); (challenge == "Bearer") != (c.status == 401) {
			t.Errorf("%s with %s: WWW-Authenticate is %q", c.upstream, c.header, challenge)
		}
		if got := ask(t, h, "GET", "/v1/limits?upstream="+c.upstream, "", c.header); got.Code != c.status {
			t.Errorf("limits of %s with %s: got %d, want %d", c.upstream, c.header, got.Code, c.status)
		}
	}
}

func TestPermitsBelongToTheirCaller(t *testing.T) {
	s := server(t, upstream(t, "api", policy()))
	s.Auth = twoTeams
	h := s.Handler()
	a, a2, b := "Authorization: Bearer "+secretA, "Authorization: Bearer "+secretA2, "Authorization: Bearer "+secretB
	id := permit(t, h, `{"upstream":"api","id":"same"}`, a)
	done := `{"permit":"` + id + `","outcome":"failed"}`
	if got := report(t, h, done, b); got.Code != 404 || !got.says(refuse.NotFound, "is unknown: it was issued by another weir") {
		t.Errorf("another's permit: got %d %s, want 404", got.Code, got.Body)
	}
	if other := permit(t, h, `{"upstream":"api","id":"same"}`, b); other == id {
		t.Errorf("another's id brought the same permit")
	}
	if again := permit(t, h, `{"upstream":"api","id":"same"}`, a2); again != id {
		t.Errorf("after a change of the secret the id brought %s, want %s", again, id)
	}
	if got := report(t, h, done, a2); got.Code != 200 {
		t.Errorf("with the next secret: got %d %s, want 200", got.Code, got.Body)
	}
	if got := report(t, h, done, b); !got.says(refuse.NotFound, "is unknown: it was issued by another weir") {
		t.Errorf("another's permit that was reported: got %d %s", got.Code, got.Body)
	}
}

// authority signs certificates for the tests of mutual TLS.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t testing.TB) *authority {
	a := &authority{}
	der, key := a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.key, a.cert = key, cert
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func (a *authority) sign(t testing.TB, c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

func (a *authority) client(t testing.TB, name string) tls.Certificate {
	der, key := a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) server(t testing.TB) tls.Certificate {
	der, key := a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "weir"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestCertificatesOverTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	for _, tokens := range [][]auth.Token{nil, twoTeams().Tokens} {
		s := server(t, upstream(t, "api", policy()))
		var callers tally
		s.Events.Acquired = func(e Acquired) { callers.add(e.Caller) }
		access, err := Config{ClientCA: "ca.pem"}.Auth(nil, func(string) ([]byte, error) { return ours.pem, nil })
		if err != nil {
			t.Fatal(err)
		}
		access.Tokens = tokens
		s.Auth = func() *auth.Auth { return access }
		l := httptest.NewUnstartedServer(s.Handler())
		l.TLS = auth.TLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{ours.server(t)}}, func() *auth.Auth { return access }, false)
		l.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
		l.StartTLS()
		get := func(header string, certs ...tls.Certificate) int {
			c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs}}}
			defer c.CloseIdleConnections()
			r, _ := http.NewRequestWithContext(t.Context(), "POST", l.URL+"/v1/acquire", strings.NewReader(`{"upstream":"api"}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", header)
			resp, err := c.Do(r)
			if err != nil {
				return 0
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		good, without := ours.client(t, "loader"), 200
		want := map[string]int{"cert:CN=loader": 2}
		if tokens != nil {
			without, want = 401, map[string]int{"team-a": 1}
		}
		for _, c := range []struct {
			name, header string
			certs        []tls.Certificate
			want         int
		}{
			{"no PEM certificate", "Bearer " + secretA, nil, 0},
			{"a strange certificate", "Bearer " + secretA, []tls.Certificate{theirs.client(t, "loader")}, 0},
			{"certificate and token", "Bearer " + secretA, []tls.Certificate{good}, 200},
			{"certificate alone", "", []tls.Certificate{good}, without},
		} {
			if got := get(c.header, c.certs...); got != c.want {
				t.Errorf("%d tokens, %s: got %d, want %d", len(tokens), c.name, got, c.want)
			}
		}
		l.Close()
		callers.want(t, want)
		if _, err := access.Check("Bearer "+secretA, &tls.ConnectionState{}); !errors.Is(err, auth.ErrUnauthorized) {
			t.Errorf("a connection without a verified certificate: got %v", err)
		}
		if _, err := access.Check("Bearer "+secretA, nil); !errors.Is(err, auth.ErrUnauthorized) {
			t.Errorf("a connection without TLS: got %v", err)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		config Config
		says   []string
	}{
		{Config{}, nil},
		{Config{Listen: "127.0.0.1:8082", GRPC: "[::1]:8083"}, nil},
		{Config{Listen: "localhost:0"}, nil},
		{Config{Listen: ":8082", Open: true}, nil},
		{Config{Listen: ":8082", ClientCA: "ca.pem"}, nil},
		{Config{Listen: ":8082", Tokens: []auth.TokenConfig{{Name: "a", Env: "WEIR_TOKEN"}}}, nil},
		{Config{Listen: "8082"}, []string{`listen "8082": want host:port`}},
		{Config{Listen: ":8082", GRPC: "10.0.0.7:8083"}, []string{`listen ":8082": would let anyone who reaches it use up the limits`, `grpc "10.0.0.7:8083": would let`}},
		{Config{Tokens: []auth.TokenConfig{{Name: "a b", Env: "A-B"}}}, []string{"tokens[0]", "name: want letters", `env: is not the name of an environment variable`}},
		{Config{MaxWait: -1, MaxPermits: -1}, []string{"max_wait", "max_permits"}},
		{Config{MaxWait: time.Hour}, []string{"max_wait 1h0m0s: want 0s to 10m0s"}},
	} {
		err := c.config.Validate()
		if (err == nil) != (c.says == nil) {
			t.Errorf("%+v: got %v", c.config, err)
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%+v: got %v, want %s", c.config, err, s)
			}
		}
	}
}

func TestConfigAuth(t *testing.T) {
	env := func(values map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	}
	one := Config{Tokens: []auth.TokenConfig{{Name: "a", Env: "TOKEN", Upstreams: []string{"api"}}}}
	access, err := one.Auth(env(map[string]string{"TOKEN": secretA}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if caller, err := access.Check("Bearer "+secretA, nil); caller != "a" || err != nil || access.May("a", "other") == nil {
		t.Errorf("got %q, %v", caller, err)
	}
	for value, says := range map[string]string{"": "is not set", "short-secret": "is shorter than 16", secretA + "\n": "contains a character", "päßwörter-aller-art": "contains a character"} {
		_, err := one.Auth(env(map[string]string{"TOKEN": value}), nil)
		if err == nil || !strings.Contains(err.Error(), "token a: environment variable TOKEN: "+says) || value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("TOKEN=%q: got %v, want %s", value, err, says)
		}
	}
	for pem, says := range map[string]string{"": "no such file", "nonsense": "contains no PEM certificate"} {
		_, err := Config{ClientCA: "ca.pem"}.Auth(env(nil), func(string) ([]byte, error) {
			if pem == "" {
				return nil, errors.New("no such file")
			}
			return []byte(pem), nil
		})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("client_ca %q: got %v, want %s", pem, err, says)
		}
	}
}

// A caller that may not use an upstream does not learn whether its jobs are limited.
func TestJobsAreNotToldToWhoMayNotUseTheUpstream(t *testing.T) {
	s := server(t, upstream(t, "drs", policy()), upstream(t, "other", policy()))
	s.Auth = func() *auth.Auth {
		return &auth.Auth{Tokens: []auth.Token{{Name: "app", SHA256: auth.Hash("a-secret-of-the-app"), Upstreams: []string{"api"}}}}
	}
	s.Jobs = map[string]http.Handler{"drs": http.NotFoundHandler()}
	for _, name := range []string{"drs", "other", "nothing"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/jobs/"+name, nil)
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer a-secret-of-the-app")
		if s.Handler().ServeHTTP(w, r); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
