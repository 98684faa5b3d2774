package observe_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/observe"
)

// canary is a secret. A text that shows any part of it is not redacted.
const canary = "CaNaRy0a12b34c56d78e9f"

var secretTexts = []string{
	`Get "https://api.example.com/v1/x?api_key=` + canary + `": EOF`,
	`Get "https://api.example.com/v1/x?a=1&token=` + canary + `&b=2": EOF`,
	`Get "https://api.example.com/v1/x?` + canary + `": EOF`,
	`Get "https://api.example.com/v1/x#access_token=` + canary + `": EOF`,
	`dial https://user:` + canary + `@api.example.com/x: refused`,
	`dial https://` + canary + `@api.example.com: refused`,
	`dial postgres://user:p@` + canary + `@api.example.com:5432/db: refused`,
	`parse "/path?sig=` + canary + `": invalid`,
	`Post "https://hooks.slack.com/services/T0/B0/` + canary + `": EOF`,
	`Post "https://discord.com/api/v10/webhooks/1/` + canary + `/slack?wait=true": EOF`,
	`Post "https://api.telegram.org/bot123:` + canary + `/sendMessage": EOF`,
	`Post "https://x.webhook.office.com/webhookb2/a@b/IncomingWebhook/` + canary + `/c": EOF`,
	`get https://b.s3.amazonaws.com/k?X-Amz-Credential=` + canary + `%2F20260101&X-Amz-Signature=` + canary + `: 403`,
	`request: Authorization: Bearer ` + canary + `, Host: x`,
	`request: map[Authorization:[Bearer ` + canary + `] Host:[x]]`,
	"GET / HTTP/1.1\r\nX-Api-Key: " + canary + "\r\nHost: x",
	"Cookie: session=" + canary + "; other=" + canary,
	`{"error":"bad","api_key":"` + canary + `"}`,
	`x-goog-api-key=` + canary,
	`bearer ` + canary + ` was refused`,
	`Basic ` + canary + ` was refused`,
	`Incorrect API key provided: sk-` + canary + `. You can find it`,
	`key AKIA` + canary + ` is unknown`,
	`ghp_` + canary,
	`client_secret = '` + canary + `'`,
	`https://hooks.example.com/x?token=` + canary + strings.Repeat(" filler", 900),
	strings.Repeat("filler ", 570) + strings.Repeat("x", 100) + ` https://user:` + canary + `@host/` + strings.Repeat("y", 3000),
	strings.Repeat("x", 5000) + canary,
}

func TestRedactMasksSecrets(t *testing.T) {
	for _, text := range secretTexts {
		if got := observe.Redact(text, 1<<20); shows(got) {
			t.Errorf("%.200q\nstill shows the secret: %.200q", text, got)
		}
	}
}

// shows reports whether s has any eight letters of the secret.
func shows(s string) bool {
	for i := range len(canary) - 7 {
		if strings.Contains(s, canary[i:i+8]) {
			return true
		}
	}
	return false
}

func TestRedactLeavesWhatIsNoSecret(t *testing.T) {
	for _, text := range []string{
		"",
		"dial tcp 10.0.0.1:443: connect: connection refused",
		`Get "https://api.example.com/v1/things/7": context deadline exceeded`,
		"api error SlowDown: Please reduce your request rate.",
		"invalid token: unexpected end; want one of a, b",
		"put: rate_limited by limit put (3000/s): retry after 1.2s",
		"Basic authentication failed",
		"what? nothing = nothing",
		"größer & kleiner; mail to a@b.example",
	} {
		if got := observe.Redact(text, 1024); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestRedactKeepsWhatHelps(t *testing.T) {
	got := observe.Redact(`Get "https://u:p@api.example.com:8443/v1/x?a=1&b=2": EOF`, 1024)
	want := `Get "https://***api.example.com:8443/v1/x?a=***&b=***": EOF`
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Errors as net/url and net/http create them, with secrets at random places.
func TestRedactMasksSecretsOfURLErrors(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		u := url.URL{Scheme: pick(r, "http", "https", "redis", "amqps"), Host: "h.example", Path: pick(r, "", "/", "/a/b")}
		secret := canary + pick(r, "", "/", "=", "+", ":", "é", "%", "@", "?", "#")
		if r.IntN(2) == 0 {
			u.User = url.UserPassword(pick(r, "", "u", secret), secret)
		}
		q := url.Values{}
		for range r.IntN(4) {
			q.Add(pick(r, "a", "token", "X-Amz-Signature", secret[len(canary):]), secret)
		}
		u.RawQuery = q.Encode()
		if r.IntN(3) == 0 {
			u.Fragment = secret
		}
		_, err := (&http.Client{Transport: failing{}}).Get(u.String())
		err = fmt.Errorf("attempt of %s: %w", u.String(), err)
		if got := observe.Error(err); shows(got) {
			t.Fatalf("seed %d: %v\nstill shows the secret: %s", seed, err, got)
		}
	}
}

type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("down") }

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func TestErrorSurvivesAnErrorThatPanics(t *testing.T) {
	if got := observe.Error((*broken)(nil)); !strings.Contains(got, "broken") {
		t.Errorf("got %q, want the type", got)
	}
	if got := observe.Error(nil); got != "" {
		t.Errorf("nil says %q, want nothing", got)
	}
}

type broken struct{ s string }

func (b *broken) Error() string { return b.s }

func TestCutEndsBetweenCharacters(t *testing.T) {
	for n := range 12 {
		got := observe.Cut("aéééééééé", n)
		if len(got) > max(n, 3) || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("cut to %d: %q", n, got)
		}
	}
	if got := observe.Cut("short", 5); got != "short" {
		t.Errorf("got %q", got)
	}
}

func FuzzRedact(f *testing.F) {
	for _, text := range secretTexts {
		f.Add(text, 64)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = max(0, min(n, 1<<12))
		if got := observe.Redact(s, n); len(got) > max(n, 3) {
			t.Errorf("%q to %d bytes: %d", s, n, len(got))
		}
		hidden := "Get \"https://u:" + canary + "@h/?k=" + canary + "\" " + s
		if got := observe.Redact(hidden, n); shows(got) && !shows(s) {
			t.Errorf("%q shows the secret: %q", hidden, got)
		}
	})
}

func ExampleRedact() {
	fmt.Println(observe.Redact(`Get "https://api.example.com/v1/things?key=s3cr3t": EOF`, 1024))
	// Output: Get "https://api.example.com/v1/things?key=***": EOF
}
