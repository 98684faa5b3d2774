package serve

import (
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/jwks"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// issuers holds the verifier of JWTs with its options. A reload that changes none of them keeps the verifier's keys.
type issuers struct {
	options jwks.Options
	timeout time.Duration
	checks  *jwks.Verifier
}

// issued returns the verifier of JWTs. Only the serving goroutine may call it.
func (s *Server) issued(j *config.JWT) (auth.Checker, error) {
	options := jwks.Options{URL: j.URL, Issuer: j.Issuer, Audience: j.Audience}
	if s.jwts.checks != nil && s.jwts.options == options && s.jwts.timeout == j.Timeout {
		return s.jwts.checks, nil
	}
	u, err := weir.New(jwks.Name, jwks.Policy(j.Timeout), weir.Options{Events: s.models.options.Events})
	if err != nil {
		return nil, err
	}
	s.jwts = issuers{options, j.Timeout, jwks.New(options, u)}
	return s.jwts.checks, nil
}
