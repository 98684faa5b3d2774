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

// Config says how a Server answers. The zero Config has no rules: it refuses nobody
// and is not ready until rules are set.
type Config struct {
	Rules            string        // a file, or a directory with *.yaml files; "" means that Set brings the rules
	Group            string        // names the state in the store; "" means "envoy"
	Timeout          time.Duration // for the calls of the store that one request takes; 0 means 20ms, as in Envoy's filter
	OnStoreError     OnStoreError  // what is answered when the store does not; "" means an error
	Cold             bool          // what the store has lost counts as used up, until its window ends; else as not used
	Headers          Headers       // for the clients of Envoy; "" means none
	MaxRequestBytes  int           // 0 means 64 KiB
	MaxConnectionAge time.Duration // connections are replaced after it, for balance; 0 means 5m
	Grace            time.Duration // that requests have on a connection which ends; 0 means 10s
}

// OnStoreError is what is answered when the store does not answer in time.
type OnStoreError string

const (
	Fail  OnStoreError = ""      // a gRPC error: Envoy's failure_mode_deny decides
	Allow OnStoreError = "allow" // every request
	Deny  OnStoreError = "deny"  // every request that meets a limit, except those in shadow_mode and quota_mode
)

// Validate reports every mistake.
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

// Options are what a Server is given besides. The zero Options serve everybody in
// the clear.
type Options struct {
	TLS *tls.Config // nil means HTTP/2 in the clear; set ClientAuth and ClientCAs for mTLS

	Veil *veil.Veil // hides the values of descriptors; nil hides only what looks like a credential

	// Auth says who calls, by the value of the authorization header and by the
	// connection, nil if it is in the clear. Its error refuses the call; one that
	// is a gRPC status is answered as it is, any other as Unauthenticated without
	// its text. Health checks are answered to everybody.
	Auth func(authorization string, conn *tls.ConnectionState) (caller string, err error)

	Streams uint32 // calls under way of one connection; 0 means any number

	Tracer *trace.Tracer // makes spans of requests, within the traces of those who ask; nil for none

	Clock  func() time.Time // nil means time.Now; only the store's clock decides, this one says where to look first
	Events Events
}
