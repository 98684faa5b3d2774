package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
)

// ownKeys adds the caller's name to the idempotency keys of a request if weir adds the credential. The upstream sees
// all callers as one, and would answer the second caller's key with the first caller's answer. Deliveries do the same,
// so a key means the same both ways.
func (t *trip) ownKeys(h http.Header) {
	if !t.to.Credentials || t.who.Name == "" {
		return
	}
	for name, v := range h {
		if len(v) == 0 || v[0] == "" || !idempotent(name) {
			continue
		}
		key := strings.Join(v, ",")
		if plain, err := delivery.ParseKey(http.Header{"Idempotency-Key": v}); err == nil {
			key = plain
		}
		sum := sha256.Sum256([]byte(t.who.Name + "\x00" + key))
		own := hex.EncodeToString(sum[:16])
		if name != "Idempotency-Key" && isUUID(v[0]) { // APIs with another header require a UUID
			own = own[:8] + "-" + own[8:12] + "-4" + own[13:16] + "-a" + own[17:20] + "-" + own[20:]
		}
		h[name] = []string{own}
	}
}

// idempotent reports whether a header of this name holds an idempotency key: Idempotency-Key and its variants, and those of
// PayPal and Azure.
func idempotent(name string) bool {
	return strings.Contains(strings.ToLower(name), "idempot") || name == "Paypal-Request-Id" || name == "Repeatability-Request-Id"
}

// isUUID reports whether a text has the form of a UUID.
func isUUID(s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	return isHex(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
}
