package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/lambdax"
)

// Tokens says whose a token is: a JWT, signed with one of the keys that a URL has (JWKS).
type Tokens struct {
	keys   keyfunc.Keyfunc
	parser *jwt.Parser
}

// A Caller is who asks.
type Caller struct {
	Name     string // the claim sub
	Operator bool   // the claim scope has "operator": may see messages of others, and metrics
}

// NewTokens reads keys as Keys does. base sends; nil means as the system does.
func NewTokens(ctx context.Context, jwks, issuer, audience string, log *slog.Logger, base http.RoundTripper) (*Tokens, error) {
	store, err := NewKeys(ctx, jwks, log, base)
	if err != nil {
		return nil, err
	}
	keys, err := keyfunc.New(keyfunc.Options{Ctx: ctx, Storage: store})
	if err != nil {
		return nil, err
	}
	// Signatures by public keys alone: a public key must not be taken for the secret of an HMAC, nor "none" for a signature.
	return &Tokens{keys, jwt.NewParser(
		jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}),
		jwt.WithIssuer(issuer), jwt.WithAudience(audience), jwt.WithExpirationRequired(), jwt.WithLeeway(30*time.Second),
	)}, nil
}

// Caller is who sends a request.
func (t *Tokens) Caller(r *http.Request) (Caller, error) {
	scheme, raw, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || raw == "" || len(raw) > 16<<10 {
		return Caller{}, &lambdax.Error{Code: lambdax.Unauthorized, Message: "send the header Authorization: Bearer TOKEN"}
	}
	var claims struct {
		jwt.RegisteredClaims
		Scope string `json:"scope"`
	}
	_, err := t.parser.ParseWithClaims(raw, &claims, t.keys.KeyfuncCtx(r.Context()))
	if errors.Is(err, errUnreadable) { // it may be good: who hears 401 throws it away
		wait := between
		if refusal, ok := errors.AsType[*weir.Refusal](err); ok {
			wait = max(refusal.RetryAfter, time.Second)
		}
		return Caller{}, &lambdax.Error{Code: lambdax.ServiceUnavailable, Message: "the token cannot be checked just now", Wait: wait, Err: err}
	}
	if err != nil || claims.Subject == "" { // why is for the log alone
		return Caller{}, &lambdax.Error{Code: lambdax.Unauthorized, Message: "the token is not valid here", Err: err}
	}
	return Caller{claims.Subject, slices.Contains(strings.Fields(claims.Scope), "operator")}, nil
}
