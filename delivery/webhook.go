package delivery

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Secret signs callbacks, as Standard Webhooks say (standardwebhooks.com, version 1).
type Secret struct{ key []byte }

// String hides the secret.
func (Secret) String() string { return "(hidden)" }

// GoString hides the secret.
func (Secret) GoString() string { return "(hidden)" }

const (
	shortestSecret = 24 // bytes
	longestSecret  = 64
)

// ParseSecret reads whsec_ and then base64 of 24 to 64 bytes; the prefix may be missing. The error does not repeat it.
func ParseSecret(text string) (Secret, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), "whsec_"))
	if err != nil || len(key) < shortestSecret || len(key) > longestSecret {
		return Secret{}, errors.New("is not a secret of Standard Webhooks: want whsec_ and 24 to 64 random bytes in base64")
	}
	return Secret{key}, nil
}

// signature is that of a message.
func (s Secret) signature(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Sign puts the headers of Standard Webhooks into h. The ID is the same for all attempts, the instant that of this one; each
// secret signs, so that receivers can change theirs one after the other. Without secrets there is no signature.
func Sign(h http.Header, id string, at time.Time, body []byte, secrets ...Secret) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = s.signature(id, timestamp, body)
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", timestamp)
	if h.Del("Webhook-Signature"); len(signatures) > 0 {
		h.Set("Webhook-Signature", strings.Join(signatures, " "))
	}
}

type signKey struct{}

// withSecrets is ctx for an attempt that is signed right before it is sent: it may have waited for long.
func withSecrets(ctx context.Context, d *Delivery, secrets []Secret) context.Context {
	id, body := d.ID, d.Body
	return context.WithValue(ctx, signKey{}, func(h http.Header) { Sign(h, id, time.Now(), body, secrets...) })
}

// signing is launch, and signs the request if it is to be signed.
func signing(r *http.Request, launch func(context.CancelCauseFunc) error) func(context.CancelCauseFunc) error {
	sign, ok := r.Context().Value(signKey{}).(func(http.Header))
	if !ok {
		return launch
	}
	return func(cancel context.CancelCauseFunc) error {
		err := launch(cancel)
		if err == nil {
			sign(r.Header)
		}
		return err
	}
}
