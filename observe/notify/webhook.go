package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Webhook is a URL that receives messages as JSON in POST requests, signed so that the receiver can verify the sender.
type Webhook struct {
	URL    Secret       // https, or http on a loopback address
	Secret Secret       // for the signature; at least 16 bytes
	Client *http.Client `json:"-"` // its transport and timeout are used; nil means a new client
}

// Headers of a webhook's request.
const (
	SignatureHeader = "X-Weir-Signature" // "t=1765000000,v1=<hex>"; see Verify
	IDHeader        = "X-Weir-Id"        // the message ID, the same on every attempt
)

type webhook struct {
	Webhook
	name string
}

// NewWebhook returns a target for a webhook, or the error in its configuration.
func NewWebhook(w Webhook) (Target, error) {
	u, err := endpoint(w.URL)
	if err == nil && len(w.Secret) < 16 {
		err = errors.New("secret: want at least 16 bytes")
	}
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	w.Client = orDefault(w.Client)
	return &webhook{Webhook: w, name: "webhook " + u.Host}, nil
}

// orDefault returns a client with the transport and timeout of c that follows no redirect.
func orDefault(c *http.Client) *http.Client {
	own := newClient()
	if c != nil {
		own.Transport, own.Timeout = c.Transport, c.Timeout
	}
	return own
}

func (w *webhook) Name() string { return w.name }

// String and GoString hide the URL when a configuration is printed.
func (w *webhook) String() string   { return w.name }
func (w *webhook) GoString() string { return w.name }

func (w *webhook) Send(ctx context.Context, m Message) error {
	body, err := json.Marshal(struct {
		Message
		Title string `json:"title"`
		Text  string `json:"text"`
	}{m, m.Title(), m.Text()})
	if err != nil {
		return &SendError{Target: w.name, Final: true, Err: err}
	}
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set(IDHeader, m.ID)
	h.Set(SignatureHeader, sign(w.Secret, time.Now(), body))
	p := post{name: w.name, client: w.Client, url: string(w.URL), header: h, body: body}
	return p.send(ctx, nil)
}

// sign returns the signature of a body at an instant. It covers the Unix time in seconds, a dot and the body, so that an old
// message cannot be replayed later.
func sign(secret Secret, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(digest(secret, t, body))
}

func digest(secret Secret, t string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(t + "."))
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}

// Verify is for receivers. It reports whether the signature header matches the body and was made less than five minutes from now.
func Verify(secret Secret, header string, body []byte, now time.Time) bool {
	t, signature, ok := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	seconds, err := strconv.ParseInt(t, 10, 64)
	if !ok || err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	got, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(got, digest(secret, t, body))
}
