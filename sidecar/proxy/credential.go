package proxy

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/seed1158cd35/weir"
)

// identify sets the credential that the upstream sees for a call, and the name of the caller. A pause after a throttled
// call applies to that credential, or to the account that pause_scope names.
func (t *target) identify(c *weir.Call, trip *trip) {
	c.Caller = trip.who.Name
	if !t.Credentials {
		t.identifyOwn(c, trip)
	}
	if c.Credential != "" && t.PauseScope != "" && c.Keys[t.PauseScope] != "" {
		setCredential(c, t.PauseScope+"="+c.Keys[t.PauseScope])
	}
}

// identifyOwn sets the hash of the credential that the caller sends to the upstream. A JWT is identified by its account,
// because clients create a new one every hour or for every call, and by the caller's name: another caller can send a
// forged JWT with this account, and the upstream's 429 for it must not pause the account's owner.
func (t *target) identifyOwn(c *weir.Call, trip *trip) {
	own := credentialOf(trip.came, trip.who, strings.TrimSuffix(trip.url().EscapedPath(), "/")+trip.path)
	account := accountOf(own)
	switch {
	case account != "":
		setCredential(c, t.Veil.Hide(account+"\x00"+trip.who.Name))
	case c.Credential == weir.NoCredential && own != "": // a dialect knows only the keys of its own providers
		setCredential(c, t.Veil.Hide(own))
	case c.Credential != "": // a dialect has set it
	case own != "":
		c.Credential = t.Veil.Hide(own)
	default:
		c.Credential = weir.NoCredential
	}
}

// setCredential replaces the credential of a call, also in its pool.
func setCredential(c *weir.Call, credential string) {
	if rest := strings.TrimPrefix(c.Pool, c.Credential); c.Pool != "" {
		c.Pool = credential + rest
	}
	c.Credential = credential
}

// accountClaims are the claims that all JWTs of an account share: issuer, subject and client.
var accountClaims = [...]string{"iss", "sub", "azp", "client_id", "appid"}

// longestJWT bounds the JWTs that are decoded.
const longestJWT = 16 << 10

// accountOf returns the account of a JWT, or "" for other credentials. The upstream verifies the signature.
func accountOf(credential string) string {
	if !strings.HasPrefix(credential, "eyJ") || len(credential) > longestJWT || strings.Count(credential, ".") != 2 {
		return ""
	}
	_, rest, _ := strings.Cut(credential, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(payload, "="))
	var claims map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	account, found := "jwt", false
	for _, name := range accountClaims {
		account += "\x00" + string(claims[name])
		found = found || len(claims[name]) > 0
	}
	if !found {
		return ""
	}
	return account
}
