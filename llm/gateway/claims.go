package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Claims verifies tokens and reads keys from their claims. An unverified claim could be forged. It is safe for
// concurrent use.
type Claims struct {
	header   string
	optional bool
	parser   *jwt.Parser
	key      any
}

// ClaimOptions specifies which tokens are valid. Exactly one of Secret and PublicKey must be set.
type ClaimOptions struct {
	Secret    []byte // for HS256, HS384 and HS512
	PublicKey []byte // in PEM, for RS256, PS256, ES256, EdDSA and related algorithms
	Header    string // contains the token; "" means Authorization
	Optional  bool   // accept requests without a token, with an empty key; otherwise refuse them
	Issuer    string // "" accepts any
	Audience  string // "" accepts any
}

// NewClaims returns a verifier. It accepts only the algorithms of the given key, so that a public key cannot be used as
// a secret.
func NewClaims(o ClaimOptions) (*Claims, error) {
	c := &Claims{header: o.Header, optional: o.Optional}
	if c.header == "" {
		c.header = "Authorization"
	}
	methods, err := []string{"HS256", "HS384", "HS512"}, error(nil)
	if len(o.Secret) > 0 {
		c.key = o.Secret
	} else if c.key, methods, err = publicKey(o.PublicKey); err != nil {
		return nil, err
	}
	options := []jwt.ParserOption{jwt.WithValidMethods(methods), jwt.WithExpirationRequired(), jwt.WithJSONNumber(), jwt.WithLeeway(leeway)}
	if o.Issuer != "" {
		options = append(options, jwt.WithIssuer(o.Issuer))
	}
	if o.Audience != "" {
		options = append(options, jwt.WithAudience(o.Audience))
	}
	c.parser = jwt.NewParser(options...)
	return c, nil
}

func publicKey(pem []byte) (key any, methods []string, err error) {
	if k, err := jwt.ParseRSAPublicKeyFromPEM(pem); err == nil {
		return k, []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, nil
	}
	if k, err := jwt.ParseECPublicKeyFromPEM(pem); err == nil {
		return k, []string{"ES256", "ES384", "ES512"}, nil
	}
	if k, err := jwt.ParseEdPublicKeyFromPEM(pem); err == nil {
		return k, []string{"EdDSA"}, nil
	}
	return nil, nil, errors.New("want a public key in PEM: RSA, ECDSA or Ed25519")
}

// leeway is the tolerated clock difference to the issuer of tokens.
const leeway = 30 * time.Second

// mostToken is the maximum length of a token in bytes.
const mostToken = 16 << 10

// Key returns a Key that reads a claim.
func (c *Claims) Key(claim string) Key {
	return func(r *http.Request) (string, error) {
		raw := r.Header.Get(c.header)
		if scheme, rest, ok := strings.Cut(raw, " "); ok && strings.EqualFold(scheme, "Bearer") {
			raw = strings.TrimSpace(rest)
		}
		if raw == "" && c.optional {
			return "", nil
		}
		if raw == "" {
			return "", fmt.Errorf("no token in %s", c.header)
		}
		if len(raw) > mostToken {
			return "", errors.New("the token is too long")
		}
		claims := jwt.MapClaims{}
		if _, err := c.parser.ParseWithClaims(raw, claims, func(*jwt.Token) (any, error) { return c.key, nil }); err != nil {
			return "", fmt.Errorf("the token in %s is not valid: %w", c.header, cause(err))
		}
		switch v := claims[claim].(type) {
		case nil:
			return "", nil
		case string:
			return v, nil
		case json.Number:
			return v.String(), nil // keeps all digits, so that large numbers stay distinct
		case bool:
			return strconv.FormatBool(v), nil
		}
		return "", fmt.Errorf("the claim %s is not a plain value", claim)
	}
}

// cause returns the reason why a token is invalid, without the token's contents.
func cause(err error) error {
	for _, known := range []error{
		jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenSignatureInvalid, jwt.ErrTokenInvalidIssuer,
		jwt.ErrTokenInvalidAudience, jwt.ErrTokenRequiredClaimMissing, jwt.ErrTokenMalformed,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return jwt.ErrTokenUnverifiable
}
