package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/llm"
)

// The headers that hold API keys.
var credentials = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// IsCredential reports whether providers take API keys in the header.
func IsCredential(header string) bool {
	return slices.Contains(credentials, http.CanonicalHeaderKey(header))
}

// presented is the API key that the caller sends; all of them if there are several. A token
// that says who calls is none: it is another each hour.
func (d *Dialect) presented(r *http.Request) string {
	var all, not []string
	if d.o.Callers != nil {
		not = d.o.Callers.Consumed
	}
	for _, name := range credentials {
		if v := r.Header.Get(name); v != "" && !slices.Contains(not, name) {
			if strings.HasPrefix(v, "AWS4-HMAC-SHA256") { // a signature is new each time; its key is not
				_, v, _ = strings.Cut(v, "Credential=")
				v, _, _ = strings.Cut(v, "/")
			}
			all = append(all, v)
		}
	}
	if strings.Contains(r.URL.RawQuery, "=") {
		if v := r.URL.Query().Get("key"); v != "" {
			all = append(all, v)
		}
	}
	return strings.Join(all, "\n")
}

// authorize puts weir's own key in the place of the caller's, where the family has it.
func (d *Dialect) authorize(r *http.Request, f llm.Family, azure bool) {
	strip(r.Header)
	switch {
	case azure:
		r.Header.Set("Api-Key", d.o.Key)
	case f == llm.Anthropic:
		r.Header.Set("X-Api-Key", d.o.Key)
	case f == llm.Gemini:
		r.Header.Set("X-Goog-Api-Key", d.o.Key)
	default:
		r.Header.Set("Authorization", "Bearer "+d.o.Key)
	}
	r.URL.RawQuery = withoutKey(r.URL.RawQuery)
}

// strip takes out every credential.
func strip(h http.Header) {
	for _, name := range credentials {
		h.Del(name)
	}
	h.Del("X-Amz-Security-Token")
	h.Del("Cookie")
}

// disown takes out what may be secret between a caller and its own provider, or an account there.
func disown(h http.Header) {
	for name := range h {
		if veil.Secret(name) {
			delete(h, name)
		}
	}
	for _, name := range []string{"OpenAI-Organization", "OpenAI-Project", "X-Goog-User-Project"} {
		h.Del(name)
	}
}

// anonymous takes out what tells weir, and nobody behind it, who calls.
func (d *Dialect) anonymous(h http.Header) {
	if d.o.Callers != nil {
		for _, name := range d.o.Callers.Consumed {
			h.Del(name)
		}
	}
}

// withoutKey is a raw query without the key that callers of Gemini may put there.
func withoutKey(raw string) string {
	return without(raw, func(name, _ string) bool { return name == "key" || name == "access_token" || name == "oauth_token" })
}

// without is a raw query but for some parameters; the others stay as they are.
func without(raw string, drop func(name, value string) bool) string {
	if raw == "" {
		return ""
	}
	var keep []string
	for part := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if !drop(strings.TrimPrefix(name, "$"), value) {
			keep = append(keep, part)
		}
	}
	return strings.Join(keep, "&")
}

// size is a number of bytes in words.
func size(n int64) string {
	if n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
