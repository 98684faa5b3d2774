package serve

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A caller that stores its share gets 429, and another caller is served. When the store is full, all callers get 507.
// Direct calls continue.
func TestStoredDeliveriesAreBoundedByCallerAndInTotal(t *testing.T) {
	n := memnet.New()
	defer n.Close()
	up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	file := filepath.Join(t.TempDir(), "deliveries.db")
	defer serveInside(t, n, "tokens: {a: {env: TOKEN_A}, b: {env: TOKEN_B}}\ndeliveries: {file: "+file+", max_stored: 10}\n"+
		"upstreams: {up: {url: \""+up+"\", routes: [{path: /up/, strip: true, deliver: true}]}}\n")()
	client := &http.Client{Transport: n.Transport()}
	send := func(token string, direct bool) (int, string) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/up/", nil)
		value, _ := insideEnv(token)
		r.Header.Set("X-Weir-Token", value)
		if !direct {
			r.Header.Set("Prefer", "respond-async")
			r.Header.Set("Weir-Not-Before", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Retry-After")
	}
	for i := range 5 {
		if got, _ := send("TOKEN_A", false); got != http.StatusAccepted {
			t.Fatalf("request %d: %d", i, got)
		}
	}
	if got, wait := send("TOKEN_A", false); got != http.StatusTooManyRequests || wait == "" {
		t.Errorf("a caller with its share gets %d, retry after %q; want 429", got, wait)
	}
	for i := range 5 {
		if got, _ := send("TOKEN_B", false); got != http.StatusAccepted {
			t.Fatalf("request %d of another caller: %d", i, got)
		}
	}
	for _, token := range []string{"TOKEN_A", "TOKEN_B"} {
		if got, _ := send(token, true); got != http.StatusOK {
			t.Errorf("a direct call gets %d", got)
		}
	}
}

func TestFullStoreAnswers507(t *testing.T) {
	m := newMailboxIn(t, "{file: deliveries.db, max_stored: 2}", "true", "", "")
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for range 2 {
		if resp, _, text := m.send("POST", "/box/", "", "Prefer: respond-async", "Weir-Not-Before: "+later); resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.StatusCode, text)
		}
	}
	resp, _, text := m.send("POST", "/box/", "", "Prefer: respond-async", "Weir-Not-Before: "+later)
	if resp.StatusCode != http.StatusInsufficientStorage {
		t.Errorf("%d %s, want 507", resp.StatusCode, text)
	}
	resp, _, text = m.send("POST", "/box/", "", "Prefer: respond-async", "Weir-Not-Before: "+time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "Weir-Not-Before") {
		t.Errorf("a year ahead: %d %s, want 400", resp.StatusCode, text)
	}
}

// An unreadable deliveries' file does not affect direct calls, and is opened once it is readable.
func TestWeirStartsWithoutItsDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
		file := filepath.Join(t.TempDir(), "deliveries.db")
		yaml := "admin: 127.0.0.1:81\ndeliveries: {file: " + file + "}\nupstreams: {up: {url: \"" + up + "\", routes: [{path: /up/, strip: true, deliver: true}]}}\n"
		client := &http.Client{Transport: n.Transport()}
		send := func(direct bool) int {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/up/", nil)
			if !direct {
				r.Header.Set("Prefer", "respond-async")
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.StatusCode
		}
		ready := func() string {
			resp, err := client.Get("http://127.0.0.1:81/readyz")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return fmt.Sprint(resp.StatusCode, " ", string(text))
		}
		stop := serveInside(t, n, yaml)
		if got := send(false); got != http.StatusAccepted {
			t.Fatal(got)
		}
		stop()
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bad := append([]byte(nil), good...)
		for i := 4096 + 8; i < len(bad); i++ { // destroys all pages except the first
			bad[i] = 0xff
		}
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		stop = serveInside(t, n, yaml)
		if got := send(true); got != http.StatusOK {
			t.Errorf("a direct call gets %d", got)
		}
		if got := send(false); got != http.StatusServiceUnavailable {
			t.Errorf("a request to be delivered gets %d, want 503", got)
		}
		if got := ready(); got != "200 ready\nproblem with deliveries\n" {
			t.Errorf("/readyz answers %q", got)
		}
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * reopenEvery)
		if got := send(false); got != http.StatusAccepted {
			t.Errorf("after the file was repaired: %d", got)
		}
		if got := ready(); got != "200 ready\n" {
			t.Errorf("after the file was repaired /readyz answers %q", got)
		}
		stop()
	})
}
