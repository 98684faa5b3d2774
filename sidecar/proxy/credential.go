package proxy

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/veil"
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
	if c.Credential == weir.NoCredential {
		return
	}
	own := credentialOf(trip.came, trip.who, trip.path)
	account := accountOf(own)
	switch {
	case account != "":
		setCredential(c, t.Veil.Hide(account+"\x00"+trip.who.Name))
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

// credentialOf returns the part of a caller's credential that is the same in every call, or "" if there is none. path
// is the path at the upstream. Signatures change with every call, so only their key ID counts. Tokens for weir itself
// do not count.
func credentialOf(r *http.Request, g guest, path string) string {
	for _, name := range [...]string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if v := r.Header[name]; len(v) > 0 && v[0] != "" && !slices.Contains(g.Shown, name) {
			return signer(v[0])
		}
	}
	if own := credentialInQuery(r.URL, g); own != "" {
		return own
	}
	var first, value string
	for name, v := range r.Header {
		if (first == "" || name < first) && len(v) > 0 && v[0] != "" && name != "Cookie" && lasts(name) && !slices.Contains(g.Shown, name) {
			first, value = name, v[0]
		}
	}
	if value != "" {
		return value
	}
	if own := cookie(r); own != "" {
		return own
	}
	// Telegram bots have their token in the path.
	if bot, ok := strings.CutPrefix(path, "/bot"); ok {
		if token, _, _ := strings.Cut(bot, "/"); strings.Contains(token, ":") {
			return token
		}
	}
	return ""
}

// lasts reports whether a header, parameter or cookie of this name holds a credential that is valid for more than one
// call.
func lasts(name string) bool {
	if !veil.Secret(name) {
		return false
	}
	lower := strings.ToLower(name)
	for _, part := range [...]string{"sig", "weir", "csrf", "xsrf", "otp", "websocket", "customer-key", "security-token", "proxy-auth", "nonce"} {
		if strings.Contains(lower, part) {
			return false
		}
	}
	return true
}

// credentialInQuery returns the key of a signed URL, or the value of the first parameter that holds a credential.
func credentialInQuery(u *url.URL, g guest) string {
	if !strings.Contains(u.RawQuery, "=") {
		return ""
	}
	var first string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		switch lower := strings.ToLower(name); {
		case value == "":
		case strings.HasSuffix(lower, "-credential"): // X-Amz-Credential, X-Goog-Credential
			id, _, _ := strings.Cut(value, "/")
			return id
		case lower == "awsaccesskeyid", lower == "googleaccessid", lower == "ossaccesskeyid":
			return value
		case first == "" && lasts(name) && !(name == "key" && slices.Contains(g.Shown, inQuery)):
			first = value
		}
	}
	return first
}

// cookie returns the first cookie by name that holds a credential.
func cookie(r *http.Request) string {
	if r.Header["Cookie"] == nil {
		return ""
	}
	var first, value string
	for _, c := range r.Cookies() {
		if (first == "" || c.Name < first) && c.Value != "" && lasts(c.Name) {
			first, value = c.Name, c.Value
		}
	}
	return value
}

// signer returns the part of an Authorization header that is the same in all calls with a credential: the key ID of a
// signature, the user of a digest, or the complete secret.
func signer(v string) string {
	scheme, rest, _ := strings.Cut(v, " ")
	rest = strings.TrimSpace(rest)
	for _, field := range [...]string{"Credential=", "keyId=", "username=", "oauth_token=", "oauth_consumer_key=", "id="} {
		if i := strings.Index(rest, field); i == 0 || i > 0 && strings.ContainsRune(" ,&\t", rune(rest[i-1])) {
			id := strings.TrimPrefix(rest[i+len(field):], `"`)
			if end := strings.IndexAny(id, `/,&" `); end >= 0 {
				id = id[:end]
			}
			if id != "" {
				return id
			}
		}
	}
	switch strings.ToLower(scheme) {
	case "bearer", "token", "basic", "dpop":
		return rest
	}
	// Schemes such as AWS ID:SIGNATURE: SharedKey, OSS, APIAuth.
	if id, _, ok := strings.Cut(rest, ":"); ok && id != "" && rest != "" {
		return id
	}
	return v
}
