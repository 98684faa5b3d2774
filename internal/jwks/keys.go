package jwks

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
)

// A key is a public key and the algorithms whose signatures it verifies. HMAC algorithms are never among these, so that a
// public key is not used as an HMAC secret.
type key struct {
	public  crypto.PublicKey
	methods []string
}

// mostKeys is the maximum number of keys in a set.
const mostKeys = 1000

// A jwk is one key as in RFC 7517 and 7518.
type jwk struct {
	Kty, Kid, Use, Alg, Crv, N, E, X, Y string
}

// parse parses a set of keys. It ignores unknown kinds, as RFC 7517 requires, and secrets, encryption keys, and keys without an
// ID. A set without usable keys is an error.
func parse(text []byte) (map[string]key, error) {
	var set struct{ Keys []jwk }
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New("is not a JSON Web Key Set")
	}
	if len(set.Keys) > mostKeys {
		return nil, fmt.Errorf("has %d keys; at most %d are read", len(set.Keys), mostKeys)
	}
	keys := make(map[string]key)
	for i := range set.Keys {
		j := &set.Keys[i]
		if k, ok := j.key(); ok && j.Kid != "" && (j.Use == "" || j.Use == "sig") {
			keys[j.Kid] = k
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("contains no public signature key with an id (kid)")
	}
	return keys, nil
}

// key returns the key if it is usable. With alg it verifies only that algorithm.
func (j *jwk) key() (k key, ok bool) {
	switch j.Kty {
	case "RSA":
		k.public, k.methods = j.rsa(), []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case "EC":
		k.public, k.methods = j.ecdsa()
	case "OKP":
		k.public, k.methods = j.ed25519(), []string{"EdDSA"}
	}
	if k.public == nil || j.Alg == "" {
		return k, k.public != nil
	}
	for _, m := range k.methods {
		if m == j.Alg {
			return key{k.public, []string{m}}, true
		}
	}
	return key{}, false
}

// rsa returns a key of at least 2,048 bits, or nil.
func (j *jwk) rsa() crypto.PublicKey {
	n, e := number(j.N), number(j.E)
	if n == nil || e == nil || n.BitLen() < 2048 || n.BitLen() > 16384 || !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 || e.Bit(0) == 0 {
		return nil
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}
}

// ecdsa returns a key on one of the three curves, or nil.
func (j *jwk) ecdsa() (crypto.PublicKey, []string) {
	curve, method := elliptic.Curve(nil), ""
	switch j.Crv {
	case "P-256":
		curve, method = elliptic.P256(), "ES256"
	case "P-384":
		curve, method = elliptic.P384(), "ES384"
	case "P-521":
		curve, method = elliptic.P521(), "ES512"
	default:
		return nil, nil
	}
	x, okX := octets(j.X)
	y, okY := octets(j.Y)
	size := (curve.Params().BitSize + 7) / 8
	if !okX || !okY || len(x) != size || len(y) != size {
		return nil, nil
	}
	public, err := ecdsa.ParseUncompressedPublicKey(curve, append(append([]byte{4}, x...), y...)) // checks that the point is on the curve
	if err != nil {
		return nil, nil
	}
	return public, []string{method}
}

func (j *jwk) ed25519() crypto.PublicKey {
	x, ok := octets(j.X)
	if j.Crv != "Ed25519" || !ok || len(x) != ed25519.PublicKeySize {
		return nil
	}
	return ed25519.PublicKey(x)
}

func octets(s string) ([]byte, bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	return b, err == nil && len(b) > 0
}

func number(s string) *big.Int {
	if b, ok := octets(s); ok {
		return new(big.Int).SetBytes(b)
	}
	return nil
}
