package auth

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
)

// A TokenConfig specifies the location of a token's secret, which is never in the file itself.
type TokenConfig struct {
	Name      string
	Env       string   // environment variable with the secret
	Upstreams []string // upstreams that it may use; none means all
}

var (
	goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	goodEnv  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Validate reports all mistakes. It does not repeat an invalid variable name, which may be the secret itself.
func (t TokenConfig) Validate() error {
	var errs []error
	if !goodName.MatchString(t.Name) {
		errs = append(errs, errors.New("name: want letters, digits, -, _ and ., 63 of them at most"))
	}
	if !goodEnv.MatchString(t.Env) {
		errs = append(errs, errors.New("env: is not the name of an environment variable; want the name of the variable that contains the secret"))
	}
	return errors.Join(errs...)
}

// New reads the secrets of tokens and the authorities of client certificates, and reports all mistakes. The errors contain no
// secret. clientCA is a PEM file; "" requires no client certificates.
func New(tokens []TokenConfig, clientCA string, env func(string) (string, bool), read func(file string) ([]byte, error)) (*Auth, error) {
	a := new(Auth)
	var errs []error
	for _, t := range tokens {
		secret, _ := env(t.Env)
		if err := CheckSecret(secret); err != nil {
			errs = append(errs, fmt.Errorf("token %s: environment variable %s: %w", t.Name, t.Env, err))
		}
		a.Tokens = append(a.Tokens, Token{Name: t.Name, SHA256: Hash(secret), Upstreams: t.Upstreams})
	}
	if clientCA != "" {
		text, err := read(clientCA)
		a.trust(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("client_ca: %w", err))
		} else if len(a.roots) == 0 {
			errs = append(errs, fmt.Errorf("client_ca %s: contains no PEM certificate", clientCA))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return a, nil
}

// trust adds the certificates in a PEM text and ignores other blocks.
func (a *Auth) trust(text []byte) {
	a.ClientCAs, a.roots = x509.NewCertPool(), make(map[string]struct{})
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			a.ClientCAs.AddCert(c)
			a.roots[authority(c)] = struct{}{}
		}
	}
}

// shortestSecret is the minimum length of a secret that online guessing cannot find.
const shortestSecret = 16

// CheckKey describes the error in a secret that only signs, without repeating the secret.
func CheckKey(secret string) error {
	switch {
	case secret == "":
		return errors.New("is not set; put the secret there")
	case len(secret) < shortestSecret:
		return fmt.Errorf("is shorter than %d characters; make one with: openssl rand -hex 32", shortestSecret)
	}
	return nil
}

// CheckSecret extends CheckKey for a secret that is also sent in headers.
func CheckSecret(secret string) error {
	if err := CheckKey(secret); err != nil {
		return err
	}
	if strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("contains a character that is not allowed in a header: white space, a control character or a non-ASCII letter")
	}
	return nil
}

// Loopback reports whether a listen host is reachable only from this machine.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// Remote reports whether a request arrived at an address that other machines can reach.
func Remote(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && !at.IP.IsLoopback()
}
