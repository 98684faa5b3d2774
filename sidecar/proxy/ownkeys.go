package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
)

// ownKeys makes the idempotency keys of a request the caller's own, where weir adds the credential: the upstream takes
// all callers for one, and would answer a key that two of them use with the first one's answer. Deliveries do the
// same, so that a key means the same both ways.
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
