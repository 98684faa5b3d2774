package serve

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/veil"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/decide"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// access holds the authentication of the call listener and the admin listener.
type access struct {
	callers, admin atomic.Pointer[auth.Auth]
	names          atomic.Pointer[[]string] // host names of the admin listener
}

// An entry is the access configuration of a file, with its secrets loaded.
type entry struct {
	calls proxy.Access
	admin *auth.Auth
	names []string
}

// readEntry loads the secrets and certificates that a file names.
func (s *Server) readEntry(file *config.File) (e entry, err error) {
	e.calls = proxy.Access{Hosts: file.Hosts, Origins: file.Origins, Open: file.Open, ConnLimit: s.connLimits[atCalls], Refused: s.turned, LacksKey: s.lacksKey}
	if e.calls.Auth, err = file.Callable.Auth(s.with.Env, os.ReadFile); err != nil {
		return e, fmt.Errorf("listen: %w", err)
	}
	if j := file.Callable.JWT; j != nil {
		if e.calls.Auth.Issued, err = s.issued(j); err != nil {
			return e, fmt.Errorf("jwt: %w", err)
		}
		e.calls.Auth.Scopes = j.Scopes
	}
	if e.admin, err = file.AdminAccess.Auth(s.with.Env, os.ReadFile); err != nil {
		return e, fmt.Errorf("admin: %w", err)
	}
	e.names = append(e.names, file.Hosts...)
	if host, _, err := net.SplitHostPort(s.file.Admin); err == nil && host != "" {
		e.names = append(e.names, host)
	}
	return e, nil
}

// veilOf returns the veil that hides the keys by which callers are counted.
func veilOf(file *config.File, env func(string) (string, bool)) (*veil.Veil, error) {
	if file.HashEnv == "" {
		return veil.New("", file.Harmless), nil
	}
	secret, _ := env(file.HashEnv)
	if err := auth.CheckSecret(secret); err != nil {
		return nil, fmt.Errorf("hash_env: environment variable %s: %w", file.HashEnv, err)
	}
	return veil.New(secret, file.Harmless), nil
}

// newListeners returns the metrics of listeners. Every reason is exported from the start.
func newListeners(registry prometheus.Registerer) *weirprom.Listeners {
	d := weirprom.NewListeners(registry)
	for _, why := range proxy.Whys {
		d.Begin("listen", string(why))
	}
	d.Begin("admin", "host", "caller", "origin")
	d.Begin("decide", decide.Whys...)
	return d
}

// turned counts a request that the call listener refused.
func (s *Server) turned(why proxy.Why) { s.turnedAway.Refused("listen", string(why)) }

// put applies an entry.
func (a *access) put(e entry) {
	a.callers.Store(e.calls.Auth)
	a.admin.Store(e.admin)
	a.names.Store(&e.names)
}

// hosts returns the names of the admin listener.
func (a *access) hosts() []string { return *a.names.Load() }

// unshaken logs a failed TLS handshake.
func (s *Server) unshaken(from net.Addr, err error) {
	s.log.Debug("TLS handshake", "from", from.String(), "error", err.Error())
}

// securedAdmin returns the admin listener, with TLS if configured.
func (s *Server) securedAdmin(l net.Listener) net.Listener {
	if !s.file.AdminTLS {
		return l
	}
	return tls.NewListener(l, auth.TLS(s.tls(), s.access.admin.Load, !s.file.AdminAll))
}
