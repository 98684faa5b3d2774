// Package auth says who asks: by a token in a header, by a certificate on the
// connection, or by both.
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

// ErrUnauthorized means that nobody knows who is asking.
var ErrUnauthorized = errors.New("unauthorized")

// ErrForbidden means that it is known who is asking, and that they may not.
var ErrForbidden = errors.New("forbidden")

// A Token is what a caller shows to be let in. Of the secret only the hash is
// kept; see Hash. It prints as its name.
type Token struct {
	Name      string            // of the caller; tokens of one name are one caller, so that secrets can be changed
	SHA256    [sha256.Size]byte `json:"-"`
	Upstreams []string          // which it may use; none means all of them
}

// Hash is what a Token keeps of its secret.
func Hash(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

func (t Token) String() string       { return t.Name }
func (t Token) GoString() string     { return t.Name }
func (t Token) LogValue() slog.Value { return slog.StringValue(t.Name) }

// Auth says who may ask. What it names is required: a token in the header, a
// certificate on the connection, or both. The zero Auth lets everyone in, as the
// anonymous caller "", and is for listeners that only this machine reaches. It is
// not changed once it is used, and then safe for concurrent use.
type Auth struct {
	Tokens []Token

	// ClientCAs are those whose certificates callers must show. The listener has
	// to verify them: see TLS.
	ClientCAs *x509.CertPool

	// Issued checks tokens that somebody else issues; nil means that none are taken. Who shows one is IssuedPrefix and its subject.
	Issued Checker
	Scopes map[string]string // by upstream: the scope that such a token must have to use it; none means that any may

	// roots are the names and keys of ClientCAs, if New has read them: a connection may outlast those by which it
	// was let in. An authority whose certificate was renewed is the same.
	roots map[string]struct{}
}

// Open reports whether anyone is let in.
func (a *Auth) Open() bool {
	return a == nil || len(a.Tokens) == 0 && a.ClientCAs == nil && a.Issued == nil
}

// IssuedPrefix keeps callers by tokens of others apart from the names of weir's own, which have no colon.
const IssuedPrefix = "jwt:"

// A Checker checks tokens that somebody else issues.
type Checker interface {
	// Looks reports whether a text has the form of such a token.
	Looks(token string) bool

	// Check says whose it is. An error that wraps ErrUnknowable says nothing of the token.
	Check(ctx context.Context, token string) (Identity, error)
}

// ErrUnknowable means that a token could not be checked: it may be good.
var ErrUnknowable = errors.New("the keys of tokens cannot be read")

// An Identity is what a token says of who shows it.
type Identity struct {
	Subject string
	Scopes  []string
}

// MayBy says whether a token of others with these scopes may use the upstream. The error wraps ErrForbidden.
func (a *Auth) MayBy(caller string, scopes []string, upstream string) error {
	if want := a.Scopes[upstream]; want != "" && !slices.Contains(scopes, want) {
		return forbidden{caller, upstream}
	}
	return nil
}

// TLS is a listener's configuration that verifies what Check relies on. now is the Auth in
// force, which each connection asks for. A connection that shows no certificate is refused,
// unless some of what is behind it is for everyone.
func TLS(base *tls.Config, now func() *Auth, some bool) *tls.Config {
	ask := tls.RequireAndVerifyClientCert
	if some {
		ask = tls.VerifyClientCertIfGiven
	}
	c := base.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		a := now()
		if a == nil || a.ClientCAs == nil {
			return nil, nil // as it stands
		}
		own := base.Clone()
		own.ClientCAs, own.ClientAuth = a.ClientCAs, ask
		return own, nil
	}
	return c
}

// Check says who is asking, by the value of the Authorization header ("Bearer
// ...") and the connection's state, which is nil without TLS. The error wraps
// ErrUnauthorized, says what is missing, and holds no secret.
func (a *Auth) Check(header string, conn *tls.ConnectionState) (caller string, err error) {
	if a.Open() {
		return "", nil
	}
	if a.ClientCAs != nil {
		if caller, err = a.Certified(conn); err != nil {
			return "", err
		}
	}
	if len(a.Tokens) > 0 || a.Issued != nil { // tokens of others are checked elsewhere: whoever shows one here is nobody
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

// Whose is the caller whose secret it is.
func (a *Auth) Whose(secret string) (caller string, ok bool) {
	hash := Hash(secret)
	for i := range a.Tokens { // all of them, so that the time taken tells nothing
		if subtle.ConstantTimeCompare(hash[:], a.Tokens[i].SHA256[:]) == 1 {
			caller, ok = a.Tokens[i].Name, true
		}
	}
	return caller, ok
}

// Certified is the caller by the certificate of the connection, which is nil without TLS.
// The prefix keeps it apart from the names of tokens, which have no colon.
func (a *Auth) Certified(conn *tls.ConnectionState) (string, error) {
	if conn == nil || !slices.ContainsFunc(conn.VerifiedChains, a.trusts) {
		return "", authError{"the connection has no trusted client certificate"}
	}
	return "cert:" + subject(conn.VerifiedChains[0][0]), nil
}

// trusts reports whether the authority at the end of a chain is trusted still.
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

// subject is the name in a certificate that outlives its renewal.
func subject(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	}
	return c.Subject.String()
}

// May reports whether a caller that Check named may use the upstream. The error
// wraps ErrForbidden.
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
