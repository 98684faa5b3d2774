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

// Tokens identifies the caller by a JWT that is signed with one of the keys at a URL (JWKS).
type Tokens struct {
	keys   keyfunc.Keyfunc
	parser *jwt.Parser
}

// A Caller is the sender of a request.
type Caller struct {
	Name     string // the claim sub
	Operator bool   // the claim scope contains "operator": the caller may read all messages, and metrics
}

// NewTokens fetches keys as NewKeys does. A nil base is the default transport.
func NewTokens(ctx context.Context, jwks, issuer, audience string, log *slog.Logger, base http.RoundTripper) (*Tokens, error) {
	store, err := NewKeys(ctx, jwks, log, base)
	if err != nil {
		return nil, err
	}
	keys, err := keyfunc.New(keyfunc.Options{Ctx: ctx, Storage: store})
	if err != nil {
		return nil, err
	}
	// Only signatures by public keys: the parser must not use a public key as an HMAC secret, or accept "none".
	return &Tokens{keys, jwt.NewParser(
		jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}),
		jwt.WithIssuer(issuer), jwt.WithAudience(audience), jwt.WithExpirationRequired(), jwt.WithLeeway(30*time.Second),
	)}, nil
}

// Caller returns the sender of a request.
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
	if errors.Is(err, errUnreadable) { // the token may be valid: a client discards it after a 401
		wait := between
		if refusal, ok := errors.AsType[*weir.Refusal](err); ok {
			wait = max(refusal.RetryAfter, time.Second)
		}
		return Caller{}, &lambdax.Error{Code: lambdax.ServiceUnavailable, Message: "the token cannot be checked just now", Wait: wait, Err: err}
	}
	if err != nil || claims.Subject == "" { // only the log has the reason
		return Caller{}, &lambdax.Error{Code: lambdax.Unauthorized, Message: "the token is not valid here", Err: err}
	}
	return Caller{claims.Subject, slices.Contains(strings.Fields(claims.Scope), "operator")}, nil
}
