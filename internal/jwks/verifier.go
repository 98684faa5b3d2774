package jwks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/auth"
)

const (
	leeway    = 30 * time.Second // by how much the clock of who issues tokens may be wrong
	mostToken = 16 << 10         // bytes of a token that is looked at
)

// Options say which tokens are believed.
type Options struct {
	URL      string // of the keys
	Issuer   string // who must have issued it
	Audience string // for whom it must be
}

// A Verifier checks tokens. Make one with New; it is safe for concurrent use.
type Verifier struct {
	source source
	parser *jwt.Parser
}

// New makes a verifier, which reads keys by way of the upstream.
func New(o Options, u *weir.Upstream) *Verifier {
	return &Verifier{
		source: source{url: o.URL, client: client(u), now: time.Now},
		parser: jwt.NewParser(
			// Signatures by public keys alone: which of these a key may check is the key's to say, not the token's.
			jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}),
			jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway),
		),
	}
}

var _ auth.Checker = (*Verifier)(nil)

// Looks reports whether a text has the form of a token, so that it is worth a check.
func (*Verifier) Looks(token string) bool {
	return strings.HasPrefix(token, "eyJ") && len(token) <= mostToken && strings.Count(token, ".") == 2
}

// Check says whose a token is, by its sub, and its scopes: the words of scope, and scp, a list or words. An error that wraps auth.ErrUnknowable says nothing of the token; no error repeats what stands in it.
func (v *Verifier) Check(ctx context.Context, token string) (auth.Identity, error) {
	if len(token) > mostToken {
		return auth.Identity{}, errors.New("the token is too long")
	}
	claims := jwt.MapClaims{} // a struct would take "Sub" for "sub"
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return v.keyOf(ctx, t) })
	subject, _ := claims["sub"].(string)
	switch {
	case errors.Is(err, auth.ErrUnknowable):
		return auth.Identity{}, fmt.Errorf("the token cannot be checked: %w", auth.ErrUnknowable)
	case err != nil:
		return auth.Identity{}, fmt.Errorf("the token is not valid: %w", cause(err))
	case subject == "":
		return auth.Identity{}, errors.New("the token has no subject (sub)")
	}
	return auth.Identity{Subject: subject, Scopes: append(words(claims["scope"]), words(claims["scp"])...)}, nil
}

var errExtension = errors.New("it has unknown extensions (crit)")

// keyOf is the key that signed a token, if it is one that signs so.
func (v *Verifier) keyOf(ctx context.Context, t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok { // RFC 7515, 4.1.11: extensions that must be understood, of which there are none here
		return nil, errExtension
	}
	kid, _ := t.Header["kid"].(string)
	if kid == "" {
		return nil, errUnknownKey
	}
	k, err := v.source.find(ctx, kid)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(k.methods, t.Method.Alg()) {
		return nil, jwt.ErrTokenSignatureInvalid
	}
	return k.public, nil
}

// words are those of a text, or of a list of texts.
func words(claim any) (all []string) {
	switch c := claim.(type) {
	case string:
		return strings.Fields(c)
	case []any:
		for _, one := range c {
			if word, ok := one.(string); ok {
				all = append(all, word)
			}
		}
	}
	return all
}

// cause is what is wrong with a token, without what stands in it.
func cause(err error) error {
	for _, known := range []error{
		errUnknownKey, errExtension, jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued, jwt.ErrTokenSignatureInvalid, jwt.ErrTokenInvalidIssuer,
		jwt.ErrTokenInvalidAudience, jwt.ErrTokenRequiredClaimMissing, jwt.ErrTokenMalformed,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return jwt.ErrTokenUnverifiable
}
