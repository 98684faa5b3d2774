package envoy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/observe/trace"
)

// Config configures a Server. The zero Config has no rules: it refuses no request, and is not ready until rules are
// set.
type Config struct {
	Rules            string        // a file, or a directory with *.yaml files; "" means that the program calls Set
	Group            string        // name of the state in the store; "" means "envoy"
	Timeout          time.Duration // for all store calls of a request; 0 means 20ms, as in Envoy's filter
	OnStoreError     OnStoreError  // response if the store does not reply; "" means an error
	Cold             bool          // state that the store has lost counts as used up until its window ends, otherwise as unused
	Headers          Headers       // for the clients of Envoy; "" means none
	MaxRequestBytes  int           // 0 means 64 KiB
	MaxConnectionAge time.Duration // connections are replaced after this time, for load balancing; 0 means 5m
	Grace            time.Duration // time to finish requests on a connection that ends; 0 means 10s
}

// OnStoreError is the response if the store does not reply in time.
type OnStoreError string

const (
	Fail  OnStoreError = ""      // a gRPC error: Envoy's failure_mode_deny decides
	Allow OnStoreError = "allow" // allows every request
	Deny  OnStoreError = "deny"  // denies every request that matches a limit, except limits in shadow_mode and quota_mode
)

// Validate reports all errors.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.OnStoreError != Fail && c.OnStoreError != Allow && c.OnStoreError != Deny {
		bad("on store error %q: must be allow, deny or left out", c.OnStoreError)
	}
	if c.Headers != NoHeaders && c.Headers != ThreeHeaders && c.Headers != PolicyHeaders {
		bad("headers %q: must be ratelimit, policy or left out", c.Headers)
	}
	if c.MaxRequestBytes < 0 || c.MaxRequestBytes > maxFile {
		bad("max request bytes %d: must be from 0 to %d", c.MaxRequestBytes, maxFile)
	}
	for name, d := range map[string]time.Duration{"timeout": c.Timeout, "max connection age": c.MaxConnectionAge, "grace": c.Grace} {
		if d < 0 {
			bad("%s %v: must not be negative", name, d)
		}
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Group = cmp.Or(c.Group, "envoy")
	c.Timeout = cmp.Or(c.Timeout, 20*time.Millisecond)
	c.MaxRequestBytes = cmp.Or(c.MaxRequestBytes, 64<<10)
	c.MaxConnectionAge = cmp.Or(c.MaxConnectionAge, 5*time.Minute)
	c.Grace = cmp.Or(c.Grace, 10*time.Second)
	return c
}

// Options are further settings of a Server. The zero Options serve all callers without TLS.
type Options struct {
	TLS *tls.Config // nil means HTTP/2 without TLS; set ClientAuth and ClientCAs for mTLS

	Veil *veil.Veil // hides the values of descriptors; nil hides only values that look like credentials

	// Auth returns the caller's name, by the value of the authorization header and by the connection, which is nil
	// without TLS. An error refuses the call. A gRPC status is returned unchanged, any other error as Unauthenticated
	// without its text. Health checks need no authentication.
	Auth func(authorization string, conn *tls.ConnectionState) (caller string, err error)

	Streams uint32 // concurrent calls of one connection; 0 means no limit

	Tracer *trace.Tracer // makes spans of requests, within the callers' traces; nil means none

	Clock  func() time.Time // nil means time.Now; used to guess the window, while the store's clock decides
	Events Events
}
