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
	leeway    = 30 * time.Second // allowed difference of the issuer's clock
	mostToken = 16 << 10         // maximum size of a token in bytes
)

// Options specify which tokens are valid.
type Options struct {
	URL      string // of the keys
	Issuer   string // required issuer
	Audience string // required audience
}

// A Verifier verifies tokens. Create one with New. It is safe for concurrent use.
type Verifier struct {
	source source
	parser *jwt.Parser
}

// New returns a verifier that fetches keys through the upstream.
func New(o Options, u *weir.Upstream) *Verifier {
	return &Verifier{
		source: source{url: o.URL, client: client(u), now: time.Now},
		parser: jwt.NewParser(
			// Only signatures by public keys. The key, not the token, decides which of these algorithms it verifies.
			jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}),
			jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway),
		),
	}
}

var _ auth.Checker = (*Verifier)(nil)

// Looks reports whether a text has the form of a token.
func (*Verifier) Looks(token string) bool {
	return strings.HasPrefix(token, "eyJ") && len(token) <= mostToken && strings.Count(token, ".") == 2
}

// Check verifies a token and returns its subject (sub) and its scopes: the words in scope, and in scp, which is a list or a
// text. An error that wraps auth.ErrUnknowable means that the token may be valid. Errors contain no content of the token.
func (v *Verifier) Check(ctx context.Context, token string) (auth.Identity, error) {
	if len(token) > mostToken {
		return auth.Identity{}, errors.New("the token is too long")
	}
	claims := jwt.MapClaims{} // a struct would accept "Sub" for "sub"
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

// keyOf returns the key that signed a token, if it verifies that algorithm.
func (v *Verifier) keyOf(ctx context.Context, t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok { // RFC 7515, 4.1.11: no required extension is supported
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

// words returns the words of a text, or of a list of texts.
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

// cause returns the reason why a token is invalid, without its content.
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
