package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/servers"
)

// adminHas asks the admin listener, and reports whether the answer has a text.
func (s *sidecar) adminHas(t *testing.T, path, text string) bool {
	t.Helper()
	resp, err := http.Get("http://" + s.admin.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var flat bytes.Buffer
	if json.Compact(&flat, b) == nil {
		b = flat.Bytes()
	}
	return strings.Contains(string(b), text)
}

// A store whose password is wrong when weir starts is looked for until it answers; the log, the
// status and the metrics say why it does not and that it does.
func TestTheStartSaysWhatIsWrongWithTheStore(t *testing.T) {
	srv := servers.Redis(t, "--requirepass", "correct")
	s := start(t, "http://127.0.0.1:1", fmt.Sprintf("store: {redis: %q}", srv.URL()))
	line := s.log.waitFor(t, "store not reached")
	if text := fmt.Sprint(line["error"]); !strings.Contains(text, "NOAUTH") || !strings.Contains(text, "wants a password") {
		t.Errorf("the log says %q, want what is wrong and what to do", text)
	}
	if !s.adminHas(t, "/v1/status", `"reached":false,`) || !s.adminHas(t, "/v1/status", "wants a password") || !s.adminHas(t, "/metrics", "weir_store_reached 0") {
		t.Error("the status or the metrics do not say that the store was not reached")
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL(), "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "AUTH correct\r\nCONFIG SET requirepass \"\"\r\n"); err != nil {
		t.Fatal(err)
	}
	s.log.waitFor(t, "store reached")
	if !s.adminHas(t, "/v1/status", `"reached":true,`) || !s.adminHas(t, "/metrics", "weir_store_reached 1") {
		t.Error("the status or the metrics do not say that the store was reached")
	}
}

// A quota in a store that is new counts as used up until its window ends; that is said, and that it is
// over when somebody says that the store is new.
func TestAColdQuotaIsNotSilent(t *testing.T) {
	srv := servers.Redis(t)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: %q}\n"+
		"upstreams: {up: {url: \"http://127.0.0.1:1\", limits: {day: {amount: 25, every: day}, fast: 100/s}}}\n", srv.URL())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startFile(t, file)
	line := s.log.waitFor(t, "store is cold")
	if line["upstream"] != "up" || line["limit"] != "day" || line["quota"] != true || !strings.Contains(fmt.Sprint(line["help"]), "weir store init") {
		t.Errorf("the log says %v", line)
	}
	if !s.adminHas(t, "/v1/status", `"upstream":"up","limit":"day","quota":true`) || !s.adminHas(t, "/metrics", `weir_store_cold{upstream="up"} 1`) {
		t.Error("the status or the metrics do not say that the store is cold")
	}
	var out bytes.Buffer
	w := world{args: []string{"init", "-config", file}, out: &out, err: &out, env: noEnv}
	if err := runStore(t.Context(), w); err != nil {
		t.Fatal(err, out.String())
	}
	if !s.finder.look(t.Context()) {
		t.Fatal("the store does not answer")
	}
	s.log.waitFor(t, "store knows limits")
	if !s.adminHas(t, "/metrics", `weir_store_cold{upstream="up"} 0`) || s.adminHas(t, "/v1/status", `"cold"`) {
		t.Error("the status or the metrics still say that the store is cold")
	}
}

// weir check -connect tries the store, the upstreams and the secrets, says in plain words what is
// wrong with each, and fails if anything is.
func TestCheckConnectTriesWhatTheFileNames(t *testing.T) {
	good := httptest.NewServer(http.NotFoundHandler())
	defer good.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	known, locked := servers.Redis(t), servers.Redis(t, "--requirepass", "correct")
	ups := func(url string) string {
		return "upstreams: {up: {url: " + url + ", limits: {all: 5/s}}}"
	}
	for _, c := range []struct {
		name, yaml string
		init       bool
		bad        bool
		says       []string
	}{
		{"all well", "store: {redis: " + known.URL() + "}\n" + ups(good.URL), true, false, []string{"good  store redis: answers in", "good  upstream up: 127.0.0.1"}},
		{"a cold store", "store: {redis: " + servers.Redis(t).URL() + "}\n" + ups(good.URL), false, false, []string{"good  store redis", "it is cold", "weir store init"}},
		{"a password", "store: {redis: " + locked.URL() + "}\n" + ups(good.URL), false, true, []string{"bad   store redis", "wants a password", "1 of 2 things"}},
		{"a wrong password", "store: {redis: " + locked.URL() + ", password_env: PASSWORD}\n" + ups(good.URL), false, true, []string{"bad   store redis", "does not accept the user or the password"}},
		{"no store", "store: {redis: redis://127.0.0.1:1}\n" + ups(good.URL), false, true, []string{"bad   store redis", "refused"}},
		{"nobody there", ups("http://127.0.0.1:1"), false, true, []string{"bad   upstream up: 127.0.0.1:1: ", "connection refused"}},
		{"no such name", ups("http://nowhere.invalid"), false, true, []string{"bad   upstream up: nowhere.invalid:80: "}},
		{"no trust", ups(untrusted.URL), false, true, []string{"bad   upstream up: ", "does not trust who signed it"}},
		{"no TLS", ups(strings.Replace(good.URL, "http:", "https:", 1)), false, true, []string{"that is no TLS: is it http?"}},
		{"a secret", "notify: {webhook_env: HOOK, webhook_secret_env: SECRET}\n" + ups(good.URL), false, true, []string{"notify.webhook_env: the environment has no HOOK", "good  environment SECRET"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "weir.yaml")
			if err := os.WriteFile(file, []byte(c.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			env := func(name string) (string, bool) {
				v, ok := map[string]string{"PASSWORD": "wrong", "SECRET": "0123456789abcdef0123456789abcdef"}[name]
				return v, ok
			}
			var out bytes.Buffer
			if c.init {
				if err := runStore(t.Context(), world{args: []string{"init", "-config", file}, out: &out, err: &out, env: env}); err != nil {
					t.Fatal(err)
				}
				out.Reset()
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := run(ctx, world{args: []string{"check", "-connect", file}, out: &out, err: &out, env: env})
			if (exit(err, io.Discard) != 0) != c.bad {
				t.Errorf("it ends with %v", err)
			}
			for _, text := range c.says {
				if !strings.Contains(out.String(), text) {
					t.Errorf("it does not say %q:\n%s", text, out.String())
				}
			}
			if strings.Contains(out.String(), "it is cold") && c.init {
				t.Errorf("a store that is known to be new is said to be cold:\n%s", out.String())
			}
		})
	}
}

// The start does not wait for the store.
func TestTheStartDoesNotWaitForTheStore(t *testing.T) {
	begin := time.Now()
	s := start(t, "http://127.0.0.1:1", "store: {redis: \"redis://127.0.0.1:1\"}")
	s.log.waitFor(t, "serving")
	if d := time.Since(begin); d > opening {
		t.Errorf("it took %v", d)
	}
	s.log.waitFor(t, "store not reached")
}
