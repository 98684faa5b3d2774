package decide

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// A Config is the part of a configuration file that is about decisions. The zero
// Config listens nowhere.
type Config struct {
	Listen string // host:port of the HTTP API; "" means off
	GRPC   string // host:port of Envoy's rate limit service; "" means off
	Open   bool   // lets addresses that other machines reach go without tokens and certificates

	Tokens   []TokenConfig
	ClientCA string   // a file of certificates, in PEM, that sign those of callers; "" means that none are asked for
	Hosts    []string // names under which callers know a loopback address, besides localhost

	MaxWait    time.Duration // longest wait that a caller can ask for; 0 means 30s
	MaxPermits int           // permits out at once, those that are waited for included; 0 means 65,536
}

// A TokenConfig says where a token's secret is. It is never in the file itself.
type TokenConfig struct {
	Name      string
	Env       string   // the environment variable that holds the secret
	Upstreams []string // which it may use; none means all of them
}

var (
	goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	goodEnv  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var errs []error
	for _, l := range []struct{ field, addr string }{{"listen", c.Listen}, {"grpc", c.GRPC}} {
		if err := c.checkAddress(l.addr); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", l.field, l.addr, err))
		}
	}
	for i, t := range c.Tokens {
		if err := t.validate(); err != nil {
			errs = append(errs, fmt.Errorf("tokens[%d] %q: %w", i, t.Name, err))
		}
	}
	if c.MaxWait < 0 || c.MaxWait > longestWait {
		errs = append(errs, fmt.Errorf("max_wait %v: want 0s to %v", c.MaxWait, longestWait))
	}
	if c.MaxPermits < 0 {
		errs = append(errs, fmt.Errorf("max_permits %d: must not be negative", c.MaxPermits))
	}
	return errors.Join(errs...)
}

// longestWait is the most that MaxWait can be. Nobody holds a connection open for
// longer.
const longestWait = 10 * time.Minute

func (c Config) checkAddress(addr string) error {
	if addr == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("want host:port, such as 127.0.0.1:8082")
	}
	if c.Open || len(c.Tokens) > 0 || c.ClientCA != "" || loopback(host) {
		return nil
	}
	return errors.New("would let whoever reaches it use up the limits; give it tokens or client_ca, or 127.0.0.1, or say open: true")
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func (t TokenConfig) validate() error {
	var errs []error
	if !goodName.MatchString(t.Name) {
		errs = append(errs, errors.New("name: want letters, digits, -, _ and ., 63 of them at most"))
	}
	if !goodEnv.MatchString(t.Env) {
		errs = append(errs, fmt.Errorf("env %s: want the name of the environment variable that holds the secret", quoted(t.Env)))
	}
	return errors.Join(errs...)
}

// Auth reads the secrets and the certificates, and reports every mistake at once.
// The errors hold no secret.
func (c Config) Auth(env func(string) (string, bool), read func(file string) ([]byte, error)) (*Auth, error) {
	a := new(Auth)
	var errs []error
	for _, t := range c.Tokens {
		secret, _ := env(t.Env)
		if err := checkSecret(secret); err != nil {
			errs = append(errs, fmt.Errorf("token %s: environment variable %s: %w", t.Name, t.Env, err))
		}
		a.Tokens = append(a.Tokens, Token{Name: t.Name, SHA256: Hash(secret), Upstreams: t.Upstreams})
	}
	if c.ClientCA != "" {
		pem, err := read(c.ClientCA)
		a.ClientCAs = x509.NewCertPool()
		if err != nil {
			errs = append(errs, fmt.Errorf("client_ca: %w", err))
		} else if !a.ClientCAs.AppendCertsFromPEM(pem) {
			errs = append(errs, fmt.Errorf("client_ca %s: has no certificate in PEM", c.ClientCA))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return a, nil
}

// shortestSecret is as long as a secret must be that cannot be guessed online.
const shortestSecret = 16

func checkSecret(secret string) error {
	switch {
	case secret == "":
		return errors.New("is not set; put the token's secret there")
	case len(secret) < shortestSecret:
		return fmt.Errorf("is shorter than %d characters; make one with: openssl rand -hex 32", shortestSecret)
	case strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("has a character that cannot stand in a header: white space, a control or a letter beyond ASCII")
	}
	return nil
}
