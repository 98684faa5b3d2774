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

// A Secret signs callbacks according to Standard Webhooks (standardwebhooks.com, version 1).
type Secret struct{ key []byte }

// String hides the secret.
func (Secret) String() string { return "(hidden)" }

// GoString hides the secret.
func (Secret) GoString() string { return "(hidden)" }

const (
	shortestSecret = 24 // bytes
	longestSecret  = 64
)

// ParseSecret parses whsec_, which is optional, followed by 24 to 64 bytes in base64. The error does not contain the
// secret.
func ParseSecret(text string) (Secret, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), "whsec_"))
	if err != nil || len(key) < shortestSecret || len(key) > longestSecret {
		return Secret{}, errors.New("is not a secret of Standard Webhooks: want whsec_ and 24 to 64 random bytes in base64")
	}
	return Secret{key}, nil
}

func (s Secret) signature(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Sign sets the headers of Standard Webhooks in h. The ID is the same for all attempts, and at is the time of this
// attempt. Each secret adds a signature, so that receivers can rotate their secrets. Without secrets there is no
// signature.
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

// withSecrets returns a context for an attempt that is signed directly before it is sent, because it may wait for long.
func withSecrets(ctx context.Context, d *Delivery, secrets []Secret) context.Context {
	id, body := d.ID, d.Body
	return context.WithValue(ctx, signKey{}, func(h http.Header) { Sign(h, id, time.Now(), body, secrets...) })
}

// signing returns launch, extended to sign the request if its context has secrets.
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
