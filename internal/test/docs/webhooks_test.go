//go:build unix

package docs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// Webhooks arrive, or are dead letters, and a signed callback reports both.
func TestWebhooksAreSentAsTheirPageShows(t *testing.T) {
	secret := []byte("24 bytes that are secret")
	ended := make(chan string, 10)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks/paid", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Idempotency-Key") != "order-81-paid" || string(body) != `{"order": 81}` {
			t.Errorf("the receiver gets %q: %s", r.Header, body)
		}
	})
	mux.HandleFunc("POST /hooks/gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	mux.HandleFunc("POST /hooks/weir", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, secret)
		_, _ = io.WriteString(mac, r.Header.Get("Webhook-Id")+"."+r.Header.Get("Webhook-Timestamp")+"."+string(body))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("Webhook-Signature") != want {
			t.Errorf("the signature is %q, want %q", r.Header.Get("Webhook-Signature"), want)
		}
		var in struct {
			Type string
			Data struct{ Status, Upstream string }
		}
		if err := json.Unmarshal(body, &in); err != nil || in.Data.Upstream != "customer" {
			t.Errorf("the callback is %s: %v", body, err)
		}
		ended <- in.Type + " " + in.Data.Status
	})
	receiver := httptest.NewServer(mux)
	t.Cleanup(receiver.Close)
	r := recipe{
		page:    "deliver-webhooks.md",
		replace: map[string]string{"https://customer.example.com": receiver.URL, "https://app.internal": receiver.URL, "deliveries.db": t.TempDir() + "/deliveries.db"},
		env:     []string{"APP_HOOK_SECRET=whsec_" + base64.StdEncoding.EncodeToString(secret)},
	}
	r.try(t)
	var all []string
	for range 2 {
		select {
		case e := <-ended:
			all = append(all, e)
		case <-time.After(served.Patience):
			t.Fatalf("only %q are called back", all)
		}
	}
	if got := strings.Join(all, ", "); got != "delivery.completed completed, delivery.failed failed" && got != "delivery.failed failed, delivery.completed completed" {
		t.Errorf("called back are %s", got)
	}
}
