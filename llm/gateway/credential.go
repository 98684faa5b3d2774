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

// credentials lists the headers that contain API keys.
var credentials = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// IsCredential reports whether the header contains a provider's API key.
func IsCredential(header string) bool {
	return slices.Contains(credentials, http.CanonicalHeaderKey(header))
}

// presented returns the API key that the caller sends, or all of them if there are several. A token that identifies the
// caller does not count, because it changes every hour.
func (d *Dialect) presented(r *http.Request) string {
	var all, not []string
	if d.o.Callers != nil {
		not = d.o.Callers.Consumed
	}
	for _, name := range credentials {
		if v := r.Header.Get(name); v != "" && !slices.Contains(not, name) {
			if strings.HasPrefix(v, "AWS4-HMAC-SHA256") { // the signature changes with each request, the access key does not
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

// authorize replaces the caller's key with weir's own, in the family's header.
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

func strip(h http.Header) {
	for _, name := range credentials {
		h.Del(name)
	}
	h.Del("X-Amz-Security-Token")
	h.Del("Cookie")
}

// disown removes headers that may contain secrets or accounts of the caller at its own provider.
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

// anonymous removes the headers that identify the caller only to weir.
func (d *Dialect) anonymous(h http.Header) {
	if d.o.Callers != nil {
		for _, name := range d.o.Callers.Consumed {
			h.Del(name)
		}
	}
}

// withoutKey removes the key parameters that Gemini callers may use from a raw query.
func withoutKey(raw string) string {
	return without(raw, func(name, _ string) bool { return name == "key" || name == "access_token" || name == "oauth_token" })
}

// without removes parameters from a raw query and keeps the rest unchanged.
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

func size(n int64) string {
	if n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
