package jwks

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/auth"
)

// An issuer has keys and serves their public parts.
type issuer struct {
	keys  map[string]crypto.Signer
	hangs bool
	away  bool
	reads atomic.Int64
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *issuer) set() []byte {
	var all []map[string]string
	for kid, k := range i.keys {
		switch p := k.Public().(type) {
		case *rsa.PublicKey:
			all = append(all, map[string]string{"kty": "RSA", "kid": kid, "use": "sig", "n": b64(p.N.Bytes()), "e": "AQAB"})
		case *ecdsa.PublicKey:
			point, _ := p.Bytes()
			all = append(all, map[string]string{"kty": "EC", "crv": "P-256", "kid": kid, "x": b64(point[1:33]), "y": b64(point[33:])})
		case ed25519.PublicKey:
			all = append(all, map[string]string{"kty": "OKP", "crv": "Ed25519", "kid": kid, "alg": "EdDSA", "x": b64(p)})
		}
	}
	b, _ := json.Marshal(map[string]any{"keys": all})
	return b
}

// RoundTrip implements http.RoundTripper.
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	i.reads.Add(1)
	if i.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	status, body := http.StatusOK, i.set()
	if i.away {
		status, body = http.StatusServiceUnavailable, nil
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

func newKeys(t testing.TB) map[string]crypto.Signer {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, d, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"r": r, "e": e, "d": d}
}

func verifier(t testing.TB, i *issuer) *Verifier {
	u, err := weir.New(Name, Policy(5*time.Second), weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := New(Options{URL: "https://login.example.com/keys", Issuer: "login", Audience: "weir"}, u)
	v.source.client = &http.Client{Transport: &httpx.Transport{Upstream: u, Base: i}}
	return v
}

func claims(change func(jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{"sub": "ada", "iss": "login", "aud": "weir", "exp": time.Now().Add(time.Hour).Unix(), "scope": "a.read a.write", "scp": []string{"b"}}
	if change != nil {
		change(c)
	}
	return c
}

func signed(t testing.TB, m jwt.SigningMethod, kid string, k any, c jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(m, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	s, err := token.SignedString(k)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// extended returns a token with a required extension that the verifier does not support.
func extended(t *testing.T, k any, c jwt.MapClaims) string {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, c)
	token.Header["kid"], token.Header["crit"], token.Header["bound"] = "r", []string{"bound"}, "device"
	s, err := token.SignedString(k)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTokensThatAreBelieved(t *testing.T) {
	i := &issuer{keys: newKeys(t)}
	v, now := verifier(t, i), time.Now()
	public := i.keys["r"].Public().(*rsa.PublicKey)
	with := func(name string, value any) jwt.MapClaims { return claims(func(c jwt.MapClaims) { c[name] = value }) }
	without := func(name string) jwt.MapClaims { return claims(func(c jwt.MapClaims) { delete(c, name) }) }
	rs := func(c jwt.MapClaims) string { return signed(t, jwt.SigningMethodRS256, "r", i.keys["r"], c) }
	for _, c := range []struct {
		name, token string
		good        bool
	}{
		{"RS256", rs(claims(nil)), true},
		{"PS512", signed(t, jwt.SigningMethodPS512, "r", i.keys["r"], claims(nil)), true},
		{"ES256", signed(t, jwt.SigningMethodES256, "e", i.keys["e"], claims(nil)), true},
		{"EdDSA", signed(t, jwt.SigningMethodEdDSA, "d", i.keys["d"], claims(nil)), true},
		{"a clock that is wrong by a little", rs(with("exp", now.Add(-20*time.Second).Unix())), true},
		{"one that is ahead by a little", rs(with("nbf", now.Add(20*time.Second).Unix())), true},
		{"of several audiences", rs(with("aud", []string{"other", "weir"})), true},
		{"none", signed(t, jwt.SigningMethodNone, "r", jwt.UnsafeAllowNoneSignatureType, claims(nil)), false},
		{"the public key as a secret", signed(t, jwt.SigningMethodHS256, "r", public.N.Bytes(), claims(nil)), false},
		{"a secret", signed(t, jwt.SigningMethodHS256, "d", []byte(i.keys["d"].Public().(ed25519.PublicKey)), claims(nil)), false},
		{"the key of another kind", signed(t, jwt.SigningMethodRS256, "e", i.keys["r"], claims(nil)), false},
		{"another key", signed(t, jwt.SigningMethodRS256, "r", newKeys(t)["r"], claims(nil)), false},
		{"a key that is not there", signed(t, jwt.SigningMethodRS256, "x", i.keys["r"], claims(nil)), false},
		{"no key", signed(t, jwt.SigningMethodRS256, "", i.keys["r"], claims(nil)), false},
		{"it is over", rs(with("exp", now.Add(-time.Minute).Unix())), false},
		{"it never ends", rs(without("exp")), false},
		{"not yet", rs(with("nbf", now.Add(time.Minute).Unix())), false},
		{"issued later", rs(with("iat", now.Add(time.Hour).Unix())), false},
		{"by another", rs(with("iss", "evil")), false},
		{"by nobody", rs(without("iss")), false},
		{"for another", rs(with("aud", "other")), false},
		{"for nobody", rs(without("aud")), false},
		{"of nobody", rs(without("sub")), false},
		{"of somebody by a name that is nearly sub", rs(with("Sub", "eve")), true},
		{"of nobody but by such a name", rs(claims(func(c jwt.MapClaims) { delete(c, "sub"); c["SUB"] = "ada" })), false},
		{"over, but for such a name", rs(claims(func(c jwt.MapClaims) {
			c["exp"] = now.Add(-time.Minute).Unix()
			c["expired"], c["eXp"] = true, now.Add(time.Hour).Unix()
		})), false},
		{"of a sub that is no text", rs(with("sub", []string{"ada"})), false},
		{"with an extension", extended(t, i.keys["r"], claims(nil)), false},
		{"too long", rs(with("pad", strings.Repeat("x", 17<<10))), false},
		{"no token", "eyJ.eyJ.x", false},
	} {
		who, err := v.Check(t.Context(), c.token)
		if (err == nil) != c.good || errors.Is(err, auth.ErrUnknowable) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.good && (who.Subject != "ada" || fmt.Sprint(who.Scopes) != "[a.read a.write b]") {
			t.Errorf("%s: %+v", c.name, who)
		}
		if err != nil && (strings.Contains(err.Error(), "ada") || strings.Contains(err.Error(), "evil")) {
			t.Errorf("%s: the error repeats the token: %v", c.name, err)
		}
	}
}

// Tokens with unknown keys cause at most one fetch every ten seconds.
func TestTokensOfUnknownKeysDoNotFloodTheirIssuer(t *testing.T) {
	keys := newKeys(t)
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{keys: keys}
		v := verifier(t, i)
		for n := range 600 {
			if _, err := v.Check(t.Context(), signed(t, jwt.SigningMethodEdDSA, fmt.Sprint(n), keys["d"], claims(nil))); err == nil || errors.Is(err, auth.ErrUnknowable) {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := i.reads.Load(); n > 7 || n < 5 {
			t.Errorf("keys were read %d times in a minute", n)
		}
	})
}

// A new key is accepted with the first token that it signed. A withdrawn key is rejected within the hour.
func TestKeysAreRotated(t *testing.T) {
	old, young := newKeys(t), newKeys(t)
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{keys: map[string]crypto.Signer{"1": old["d"]}}
		v := verifier(t, i)
		check := func(kid string, k crypto.Signer) error {
			_, err := v.Check(t.Context(), signed(t, jwt.SigningMethodEdDSA, kid, k, claims(nil)))
			synctest.Wait()
			return err
		}
		if err := check("1", old["d"]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		i.keys = map[string]crypto.Signer{"2": young["d"]}
		if err := check("1", old["d"]); err != nil { // the verifier does not know of the change
			t.Error(err)
		}
		if err := check("2", young["d"]); err != nil {
			t.Error(err)
		}
		if err := check("1", old["d"]); err == nil {
			t.Error("a key that was withdrawn is good")
		}
		i.keys = map[string]crypto.Signer{"3": old["d"]}
		time.Sleep(fresh)
		_ = check("2", young["d"]) // causes a fetch
		if err := check("2", young["d"]); err == nil {
			t.Error("a key that was withdrawn is good after an hour")
		}
	})
}

// While fetching fails, known keys stay valid for a day. Callers wait at most for the timeout, and the breaker prevents most
// fetches.
func TestKeysThatCannotBeRead(t *testing.T) {
	keys := newKeys(t)
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{keys: keys, hangs: true}
		v := verifier(t, i)
		check := func() error {
			_, err := v.Check(context.Background(), signed(t, jwt.SigningMethodEdDSA, "d", keys["d"], claims(nil)))
			synctest.Wait()
			return err
		}
		began := time.Now()
		if err := check(); !errors.Is(err, auth.ErrUnknowable) || time.Since(began) > 6*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		i.hangs, i.away = false, true
		for range 600 {
			if err := check(); !errors.Is(err, auth.ErrUnknowable) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := i.reads.Load(); n > 70 {
			t.Errorf("they were asked for %d times in ten minutes", n)
		}
		i.away = false
		time.Sleep(2 * time.Minute)
		_ = check() // the breaker may still refuse it
		time.Sleep(2 * time.Minute)
		if err := check(); err != nil {
			t.Fatal(err)
		}
		i.away = true
		time.Sleep(time.Hour)
		_, err := v.Check(t.Context(), signed(t, jwt.SigningMethodEdDSA, "young", keys["d"], claims(nil)))
		if !errors.Is(err, auth.ErrUnknowable) {
			t.Errorf("of a key that may be a new one: %v", err)
		}
		time.Sleep(22 * time.Hour)
		if err := check(); err != nil {
			t.Errorf("within a day: %v", err)
		}
		time.Sleep(2 * time.Hour)
		if err := check(); !errors.Is(err, auth.ErrUnknowable) {
			t.Errorf("after more than a day: %v", err)
		}
	})
}

func TestSetsOfKeys(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		keys int
	}{
		"no JSON":             {"<html>", 0},
		"none":                {`{"keys": []}`, 0},
		"a secret":            {`{"keys": [{"kty": "oct", "kid": "a", "k": "c2VjcmV0"}]}`, 0},
		"a key that is short": {`{"keys": [{"kty": "RSA", "kid": "a", "n": "AQAB", "e": "AQAB"}]}`, 0},
		"no point":            {`{"keys": [{"kty": "EC", "crv": "P-256", "kid": "a", "x": "` + b64(make([]byte, 32)) + `", "y": "` + b64(make([]byte, 32)) + `"}]}`, 0},
		"for encryption":      {`{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", "use": "enc", "x": "` + b64(make([]byte, 32)) + `"}]}`, 0},
		"of another alg":      {`{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", "alg": "HS256", "x": "` + b64(make([]byte, 32)) + `"}]}`, 0},
		"without an id":       {`{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "` + b64(make([]byte, 32)) + `"}]}`, 0},
		"one":                 {`{"keys": [{"kty": "new"}, {"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "` + b64(make([]byte, 32)) + `"}]}`, 1},
	} {
		keys, err := parse([]byte(c.text))
		if len(keys) != c.keys || (err == nil) != (c.keys > 0) {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
	}
}
