package decide

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/seed1158cd35/weir/internal/auth"
)

// A Config is the part of a configuration file about decisions. The zero Config does not listen.
type Config struct {
	Listen string // host:port of the HTTP API; "" means off
	GRPC   string // host:port of Envoy's rate limit service; "" means off
	Open   bool   // permits non-loopback addresses without tokens and certificates

	Tokens   []auth.TokenConfig
	ClientCA string   // PEM file of the CAs of client certificates; "" means that none are requested
	Hosts    []string // names that callers use for a loopback address, besides localhost

	MaxWait    time.Duration // longest wait that a caller can request; 0 means 30s
	MaxPermits int           // unended permits, including acquires that wait; 0 means 65,536
}

// Validate reports all errors together.
func (c Config) Validate() error {
	var errs []error
	for _, l := range []struct{ field, addr string }{{"listen", c.Listen}, {"grpc", c.GRPC}} {
		if err := c.checkAddress(l.addr); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", l.field, l.addr, err))
		}
	}
	for i, t := range c.Tokens {
		if err := t.Validate(); err != nil {
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

// longestWait is the upper bound of MaxWait. Callers do not hold a connection open for longer.
const longestWait = 10 * time.Minute

func (c Config) checkAddress(addr string) error {
	if addr == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("want host:port, such as 127.0.0.1:8082")
	}
	if c.Open || len(c.Tokens) > 0 || c.ClientCA != "" || auth.Loopback(host) {
		return nil
	}
	return errors.New("would let anyone who reaches it use up the limits; configure tokens with reports, or use 127.0.0.1")
}

// Auth reads the secrets and the certificates, and reports all errors together. The errors contain no secret.
func (c Config) Auth(env func(string) (string, bool), read func(file string) ([]byte, error)) (*auth.Auth, error) {
	return auth.New(c.Tokens, c.ClientCA, env, read)
}
