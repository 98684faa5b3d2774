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
		if len(v) == 0 || v[0] == "" || !strings.Contains(strings.ToLower(name), "idempot") && name != "Paypal-Request-Id" {
			continue
		}
		key := strings.Join(v, ",")
		if plain, err := delivery.ParseKey(http.Header{"Idempotency-Key": v}); err == nil {
			key = plain
		}
		sum := sha256.Sum256([]byte(t.who.Name + "\x00" + key))
		h[name] = []string{hex.EncodeToString(sum[:16])}
	}
}
