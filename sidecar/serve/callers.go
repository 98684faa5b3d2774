package serve

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/observe/why"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// count applies the limits of callers. Their usage is kept.
func (m *models) count(callers *gateway.Callers, c *config.Callers) (err error) {
	if c == nil {
		m.uncount()
		return nil
	}
	if m.callers == nil {
		m.callers, err = weir.New(config.CallersName, c.Policy, m.options)
	} else {
		err = m.callers.Set(c.Policy)
	}
	callers.Limits = m.callers
	return err
}

// uncount removes the limits of callers.
func (m *models) uncount() {
	if m.callers != nil {
		m.callers.Close()
		m.callers = nil
	}
}

func callerKeys(c *config.Callers, env func(string) (string, bool), v *veil.Veil) (map[string]gateway.Key, error) {
	var claims *gateway.Claims
	if c.Claims != nil {
		var err error
		if claims, err = newClaims(c.Claims, env); err != nil {
			return nil, fmt.Errorf("claims: %w", err)
		}
	}
	keys := make(map[string]gateway.Key, len(c.Keys))
	for scope, s := range c.Keys {
		if s.Kind == config.Claim {
			read := claims.Key(s.Name)
			keys[scope] = func(r *http.Request) (string, error) {
				value, err := read(r)
				return v.Key(scope, value), err
			}
		} else {
			read := s.Veiled(v, scope)
			keys[scope] = func(r *http.Request) (string, error) { return read(r), nil }
		}
		if c.Required[scope] {
			keys[scope] = keys[scope].Required(scope, cmp.Or(s.Name, scope), missing(scope, s))
		}
	}
	return keys, nil
}

// missing tells a caller which value its request lacks, and how to send it.
func missing(scope string, s httpx.Source) string {
	switch s.Kind {
	case httpx.FromHeader:
		return fmt.Sprintf("the header %[1]s is missing: send %[1]s: NAME, where NAME is the caller's %[2]s", s.Name, scope)
	case httpx.FromQuery:
		return fmt.Sprintf("the query has no parameter %[1]s: add %[1]s=NAME, where NAME is the caller's %[2]s", s.Name, scope)
	case config.Claim:
		return fmt.Sprintf("the request has no token with the claim %s: send one", s.Name)
	}
	return fmt.Sprintf("the request does not contain the caller's %s: authenticate with a token or a certificate", scope)
}

// lacksKey records a refused request without a value that is required.
func (s *Server) lacksKey(id, upstream, scope, text string) {
	s.kept.Invalid(id, upstream, "missing_key", text, clock.System.Now(), why.Change{
		Field: "callers.missing", Say: "write " + scope + ": share, and all calls without a value are counted together; otherwise the caller must send one",
	})
}

// consumed returns the headers that only identify the caller to weir. The upstream does not need them.
func consumed(c *config.Callers) (all []string) {
	if c.Claims != nil {
		all = append(all, http.CanonicalHeaderKey(cmp.Or(c.Claims.Header, "Authorization")))
	}
	for _, s := range c.Keys {
		if s.Kind == httpx.FromHeader && !gateway.IsCredential(s.Name) {
			all = append(all, s.Name)
		}
	}
	return all
}

func newClaims(c *config.Claims, env func(string) (string, bool)) (*gateway.Claims, error) {
	o := gateway.ClaimOptions{Header: c.Header, Optional: c.Optional, Issuer: c.Issuer, Audience: c.Audience}
	if c.SecretEnv != "" {
		secret, err := secretOf(c.SecretEnv, env)
		if err == nil {
			if err = auth.CheckKey(secret); err != nil {
				err = fmt.Errorf("environment variable %s: %w", c.SecretEnv, err)
			}
		}
		if err != nil {
			return nil, err
		}
		o.Secret = []byte(secret)
		return gateway.NewClaims(o)
	}
	pem, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return nil, err
	}
	o.PublicKey = pem
	return gateway.NewClaims(o)
}

// secretOf returns the value of a required environment variable.
func secretOf(name string, env func(string) (string, bool)) (string, error) {
	if v, ok := env(name); ok && strings.TrimSpace(v) != "" {
		return strings.TrimSpace(v), nil
	}
	return "", fmt.Errorf("environment variable %s is not set; set it before weir starts", name)
}

// counted returns the upstream that counts callers, or nil if callers have no limits.
func (m *models) counted() *weir.Upstream {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.callers
}
