package proxy

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/veil"
)

// credentialOf returns the part of a caller's credential that is the same in every call, or "" if there is none. path
// is the path at the upstream. Signatures change with every call, so only their key ID counts. Tokens for weir itself
// do not count.
func credentialOf(r *http.Request, g guest, path string) string {
	for _, name := range [...]string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if v := r.Header[name]; len(v) > 0 && v[0] != "" && !slices.Contains(g.Shown, name) {
			if own := signer(v[0]); own != "" {
				return own
			}
		}
	}
	q := parameters(r.URL, g)
	if own := cmp.Or(signatureKey(r.Header), q.signedURL(), q.credential(), ownHeader(r.Header, g), cookie(r)); own != "" {
		return own
	}
	return cmp.Or(credentialInPath(r.Method, path), q.id(), idHeader(r.Header, g))
}

// signatureKey returns the key ID of a signature of RFC 9421 or of its drafts, or the user of WS-Security.
func signatureKey(h http.Header) string {
	for _, name := range [...]string{"Signature-Input", "Signature"} {
		if v := h[name]; len(v) > 0 {
			if id := field(v[0], "keyid="); id != "" {
				return id
			}
		}
	}
	if v := h["X-Wsse"]; len(v) > 0 {
		return field(v[0], "username=")
	}
	return ""
}

// perCall are parts of names of values that change with every call, although the names are those of credentials.
var perCall = [...]string{"sig", "weir", "csrf", "xsrf", "otp", "websocket", "customer-key", "security-token", "proxy-auth", "nonce", "captcha", "turnstile", "timestamp", "expire"}

// positions are ends of names of positions in lists and of stored things, without separators.
var positions = [...]string{
	"pagetoken", "nexttoken", "continuationtoken", "skiptoken", "synctoken", "deltatoken", "cursortoken", "resumetoken", "startingtoken", "paginationtoken", "changetoken",
	"startkey", "endkey", "keymarker", "objectkey", "filekey", "uploadkey", "searchkey", "issuekey", "projectkey",
}

// lasts reports whether a header, parameter or cookie of this name holds a credential that is valid for more than one
// call.
func lasts(name string) bool {
	if !veil.Secret(name) {
		return false
	}
	lower := strings.ToLower(name)
	joined := joinWords(lower)
	return !slices.ContainsFunc(perCall[:], func(part string) bool { return strings.Contains(lower, part) }) &&
		!slices.ContainsFunc(positions[:], func(end string) bool { return strings.HasSuffix(joined, end) })
}

// joinWords returns a name in lower case without separators.
func joinWords(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c == '.' {
			return -1
		}
		return c
	}, strings.ToLower(name))
}

// A query is the parameters that may hold credentials, by name.
type query map[string]string

// parameters returns the parameters of a URL with a value. It leaves out weir's own token.
func parameters(u *url.URL, g guest) query {
	if !strings.Contains(u.RawQuery, "=") {
		return nil
	}
	q := make(query)
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if value == "" {
			continue
		}
		if raw, err := url.QueryUnescape(name); err == nil {
			name = raw
		}
		if raw, err := url.QueryUnescape(value); err == nil {
			value = raw
		}
		if _, twice := q[name]; !twice && !(name == "key" && slices.Contains(g.Shown, inQuery)) {
			q[name] = value
		}
	}
	return q
}

// signedURL returns the key of a signed URL: X-Amz-Credential, X-Goog-Credential, AWSAccessKeyId. The shared access signature of
// Azure has the ID of a user, or is the credential itself.
func (q query) signedURL() string {
	for name, value := range q {
		switch lower := strings.ToLower(name); {
		case strings.HasSuffix(lower, "-credential"):
			id, _, _ := strings.Cut(value, "/")
			return id
		case lower == "awsaccesskeyid", lower == "googleaccessid", lower == "ossaccesskeyid", lower == "q-ak", lower == "key-pair-id":
			return value
		}
	}
	if q["sig"] == "" || q["sv"] == "" && q["se"] == "" {
		return ""
	}
	if user := q["skoid"]; user != "" {
		return user
	}
	return q["sig"]
}

// tokens are parameters that belong to a user, next to the key of a program: Google Chat, Trello.
var tokens = []string{"access_token", "token", "auth_token", "oauth_token"}

// credential returns the token of a user, or the first parameter by name that holds a credential.
func (q query) credential() string {
	for _, name := range tokens {
		if v := q[name]; v != "" {
			return v
		}
	}
	return q.first(lasts)
}

// first returns the value of the first parameter by name that fits.
func (q query) first(fits func(name string) bool) string {
	var first string
	for name := range q {
		if (first == "" || name < first) && fits(name) {
			first = name
		}
	}
	return q[first]
}

// ids are names of public IDs that some APIs accept as the only credential, without separators: OpenWeather, Wolfram Alpha, Unsplash,
// Open Exchange Rates, Wargaming, Baidu Maps.
var ids = []string{"appid", "applicationid", "clientid", "ak"}

// id returns the value of the first parameter by name that is one of ids. A number or a UUID is the ID of a stored thing. A code
// counts if it is a key of Azure Functions, which contain AzFu.
func (q query) id() string {
	if v := q["code"]; strings.Contains(v, "AzFu") {
		return v
	}
	return q.first(func(name string) bool { return slices.Contains(ids, joinWords(name)) && !isID(q[name]) })
}

func isID(v string) bool {
	return strings.Trim(v, "0123456789") == "" || len(v) == 36 && strings.Count(v, "-") == 4
}

// ownHeader returns the first header by name that holds a credential. Names such as X-Auth-Email and X-Auth-Client contain a user,
// so that keys and tokens have precedence.
func ownHeader(h http.Header, g guest) string {
	var first string
	isKey := func(name string) bool {
		lower := strings.ToLower(name)
		return strings.HasSuffix(lower, "key") || strings.HasSuffix(lower, "token")
	}
	for name, v := range h {
		if len(v) == 0 || v[0] == "" || name == "Cookie" || !lasts(name) || slices.Contains(g.Shown, name) {
			continue
		}
		if key, before := isKey(name), isKey(first); first == "" || key && !before || key == before && name < first {
			first = name
		}
	}
	if first == "" {
		return ""
	}
	return signer(h[first][0])
}

// idHeaders contain the only credential of some APIs, or the certificate that a proxy before weir has checked.
var idHeaders = [...]string{"Client-Id", "X-Client-Id", "X-Ibm-Client-Id", "X-Honeycomb-Team", "Client-Cert", "X-Forwarded-Client-Cert", "X-Client-Cert", "X-Ssl-Client-Cert", "Ssl-Client-Cert", "X-Arr-Clientcert"}

func idHeader(h http.Header, g guest) string {
	for _, name := range idHeaders {
		if v := h[name]; len(v) > 0 && v[0] != "" && !slices.Contains(g.Shown, name) {
			return v[0]
		}
	}
	return ""
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
	switch scheme = strings.ToLower(scheme); {
	case scheme == "bearer", scheme == "token", scheme == "basic", scheme == "dpop":
		return rest
	case scheme == "wsse": // the user is in X-WSSE
		return ""
	case scheme == "sharedaccesssignature": // of Azure
		if name := field(rest, "skn="); name != "" {
			return field(rest, "sr=") + " " + name
		}
		return cmp.Or(field(rest, "sr="), v)
	case strings.HasPrefix(scheme, "bce-auth-v"): // of Baidu: bce-auth-v1/ID/TIME/...
		if _, id, ok := strings.Cut(v, "/"); ok {
			id, _, _ = strings.Cut(id, "/")
			return id
		}
	}
	for _, name := range [...]string{"credential=", "keyid=", "username=", "oauth_token=", "oauth_consumer_key=", "sentry_key=", "client_token=", "q-ak=", "access=", "id="} {
		if id := field(v, name); id != "" {
			return id
		}
	}
	// Schemes such as AWS ID:SIGNATURE: SharedKey, OSS, APIAuth.
	if id, _, ok := strings.Cut(rest, ":"); ok && id != "" && rest != "" {
		return id
	}
	return v
}

// field returns the value of a field in any case: of Credential, it is only the key ID. It returns "" if the field is missing.
func field(v, name string) string {
	for i := 0; i+len(name) < len(v); i++ {
		if !strings.EqualFold(v[i:i+len(name)], name) || i > 0 && !strings.ContainsRune(" ,&;\t", rune(v[i-1])) {
			continue
		}
		value, ends := v[i+len(name):], ",&; "
		if name == "credential=" {
			ends += "/"
		}
		if value[0] == '"' {
			value, ends = value[1:], `"`
		}
		if end := strings.IndexAny(value, ends); end >= 0 {
			value = value[:end]
		}
		if value != "" {
			return value
		}
	}
	return ""
}
