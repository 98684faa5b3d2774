package llmdialect

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/llm"
)

// The headers that hold API keys.
var credentials = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// credential is the API key with which a request is sent on.
func (d *Dialect) credential(r *http.Request) string {
	if d.o.Key != "" {
		return d.o.Key
	}
	for _, name := range credentials {
		if v := r.Header.Get(name); v != "" {
			if strings.HasPrefix(v, "AWS4-HMAC-SHA256") { // a signature is new each time; its key is not
				_, v, _ = strings.Cut(v, "Credential=")
				v, _, _ = strings.Cut(v, "/")
			}
			return v
		}
	}
	if r.URL.RawQuery == "" {
		return ""
	}
	return r.URL.Query().Get("key")
}

// authorize puts weir's own key in the place of the caller's.
func (d *Dialect) authorize(r *http.Request) {
	if d.o.Key == "" {
		return
	}
	azure := r.Header.Get("Api-Key") != ""
	strip(r.Header)
	switch {
	case azure:
		r.Header.Set("Api-Key", d.o.Key)
	case d.o.Family == llm.Anthropic:
		r.Header.Set("X-Api-Key", d.o.Key)
	case d.o.Family == llm.Gemini:
		r.Header.Set("X-Goog-Api-Key", d.o.Key)
		r.URL.RawQuery = withoutKey(r.URL.RawQuery)
	default:
		r.Header.Set("Authorization", "Bearer "+d.o.Key)
	}
}

// strip takes out every credential.
func strip(h http.Header) {
	for _, name := range credentials {
		h.Del(name)
	}
	h.Del("X-Amz-Security-Token")
	h.Del("Cookie")
}

// withoutKey is a raw query without the key that callers of Gemini may put there.
func withoutKey(raw string) string {
	if !strings.Contains(raw, "key=") {
		return raw
	}
	var keep []string
	for part := range strings.SplitSeq(raw, "&") {
		if !strings.HasPrefix(part, "key=") {
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
