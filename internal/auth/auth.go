// Package auth identifies callers: by a token in a header, by a client certificate, or by both.
package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
)

// ErrUnauthorized reports that the caller is unknown.
var ErrUnauthorized = errors.New("unauthorized")

// ErrForbidden reports that the caller is known and lacks the permission.
var ErrForbidden = errors.New("forbidden")

// A Token is a caller's credential. It contains only the hash of the secret; see Hash. It prints as its name.
type Token struct {
	Name      string            // of the caller; several tokens with a name are one caller, so that secrets can be rotated
	SHA256    [sha256.Size]byte `json:"-"`
	Upstreams []string          // upstreams that it may use; none means all
}

// Hash returns the hash that a Token stores of its secret.
func Hash(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

func (t Token) String() string       { return t.Name }
func (t Token) GoString() string     { return t.Name }
func (t Token) LogValue() slog.Value { return slog.StringValue(t.Name) }

// Auth specifies who may call. Each configured credential is required: a token in the header, a client certificate, or both.
// The zero Auth admits everyone as the anonymous caller "", for listeners that only this machine reaches. It must not be
// changed after its first use, and is then safe for concurrent use.
type Auth struct {
	Tokens []Token

	// ClientCAs are the authorities of client certificates. The listener must verify these: see TLS.
	ClientCAs *x509.CertPool

	// Issued checks tokens of external issuers. nil accepts none. The caller's name is IssuedPrefix and the token's subject.
	Issued Checker
	Scopes map[string]string // by upstream, the scope that such a token needs; none means that any token may use it

	// roots are the names and keys of ClientCAs, if New has read them. They let Check verify connections that were accepted
	// with an earlier Auth. An authority with a renewed certificate has the same entry.
	roots map[string]struct{}
}

// Open reports whether everyone may call.
func (a *Auth) Open() bool {
	return a == nil || len(a.Tokens) == 0 && a.ClientCAs == nil && a.Issued == nil
}

// IssuedPrefix separates callers with external tokens from the names of configured tokens, which have no colon.
const IssuedPrefix = "jwt:"

// A Checker checks tokens of an external issuer.
type Checker interface {
	// Looks reports whether a text has the form of such a token.
	Looks(token string) bool

	// Check returns the identity in a token. An error that wraps ErrUnknowable means that the token may be valid.
	Check(ctx context.Context, token string) (Identity, error)
}

// ErrUnknowable reports that a token could not be checked, so it may be valid.
var ErrUnknowable = errors.New("the keys of tokens cannot be read")

// An Identity is the content of a token.
type Identity struct {
	Subject string
	Scopes  []string
}

// MayBy reports whether an external token with these scopes may use the upstream. The error wraps ErrForbidden.
func (a *Auth) MayBy(caller string, scopes []string, upstream string) error {
	if want := a.Scopes[upstream]; want != "" && !slices.Contains(scopes, want) {
		return forbidden{caller, upstream}
	}
	return nil
}

// TLS returns a listener's configuration that verifies client certificates for Check. Each connection calls now for the current
// Auth. A connection without a certificate is refused, unless some is set, which means that some paths are public.
func TLS(base *tls.Config, now func() *Auth, some bool) *tls.Config {
	ask := tls.RequireAndVerifyClientCert
	if some {
		ask = tls.VerifyClientCertIfGiven
	}
	c := base.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		a := now()
		if a == nil || a.ClientCAs == nil {
			return nil, nil // use base unchanged
		}
		own := base.Clone()
		own.ClientCAs, own.ClientAuth = a.ClientCAs, ask
		return own, nil
	}
	return c
}

// Check identifies the caller by the value of the Authorization header ("Bearer ...") and the state of the connection, which is
// nil without TLS. The error wraps ErrUnauthorized, describes what is missing, and contains no secret.
func (a *Auth) Check(header string, conn *tls.ConnectionState) (caller string, err error) {
	if a.Open() {
		return "", nil
	}
	if a.ClientCAs != nil {
		if caller, err = a.Certified(conn); err != nil {
			return "", err
		}
	}
	if len(a.Tokens) > 0 || a.Issued != nil { // external tokens are checked elsewhere, so here they are invalid
		return a.bearer(header)
	}
	return caller, nil
}

func (a *Auth) bearer(header string) (string, error) {
	scheme, secret, _ := strings.Cut(header, " ")
	switch {
	case header == "":
		return "", authError{"no token; send the header Authorization: Bearer TOKEN"}
	case !strings.EqualFold(scheme, "Bearer"):
		return "", authError{"the header Authorization is not of the form Bearer TOKEN"}
	}
	if name, ok := a.Whose(strings.TrimSpace(secret)); ok {
		return name, nil
	}
	return "", authError{"the token is not one of the configured tokens"}
}

// Whose returns the caller with a secret.
func (a *Auth) Whose(secret string) (caller string, ok bool) {
	hash := Hash(secret)
	for i := range a.Tokens { // no early exit, so that the time does not depend on the match
		if subtle.ConstantTimeCompare(hash[:], a.Tokens[i].SHA256[:]) == 1 {
			caller, ok = a.Tokens[i].Name, true
		}
	}
	return caller, ok
}

// Certified returns the caller in the client certificate of the connection, which is nil without TLS. The prefix separates it
// from the names of tokens, which have no colon.
func (a *Auth) Certified(conn *tls.ConnectionState) (string, error) {
	if conn == nil || !slices.ContainsFunc(conn.VerifiedChains, a.trusts) {
		return "", authError{"the connection has no trusted client certificate"}
	}
	return "cert:" + subject(conn.VerifiedChains[0][0]), nil
}

// trusts reports whether the authority at the end of a chain is still trusted.
func (a *Auth) trusts(chain []*x509.Certificate) bool {
	if len(chain) == 0 || a.roots == nil {
		return len(chain) > 0
	}
	_, ok := a.roots[authority(chain[len(chain)-1])]
	return ok
}

func authority(c *x509.Certificate) string {
	return string(c.RawSubject) + string(c.RawSubjectPublicKeyInfo)
}

// subject returns the name in a certificate that stays the same when it is renewed.
func subject(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	}
	return c.Subject.String()
}

// May reports whether a caller from Check may use the upstream. The error wraps ErrForbidden.
func (a *Auth) May(caller, upstream string) error {
	if a == nil || len(a.Tokens) == 0 {
		return nil
	}
	for _, t := range a.Tokens {
		if t.Name == caller && (len(t.Upstreams) == 0 || slices.Contains(t.Upstreams, upstream)) {
			return nil
		}
	}
	return forbidden{caller, upstream}
}

type authError struct{ message string }

func (e authError) Error() string { return e.message }
func (e authError) Unwrap() error { return ErrUnauthorized }

type forbidden struct{ caller, upstream string }

func (e forbidden) Error() string {
	return "the token of " + strconv.QuoteToASCII(e.caller) + " may not use upstream " + strconv.QuoteToASCII(e.upstream)
}
func (e forbidden) Unwrap() error { return ErrForbidden }
