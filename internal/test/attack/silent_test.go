//go:build unix

package attack

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A dependency of weir is missing or wrong. The check names it and its line. A running weir reports it in its log, which is
// JSON, in /readyz, and in its status.
func TestAttackSilentStarts(t *testing.T) {
	v := newVictim(t)
	upstream := func(more string) string { return fmt.Sprintf("upstreams:\n  s3: {url: %q%s}\n", v.url, more) }
	t.Run("no secret", func(t *testing.T) {
		file := local + "hash_env: HASH\ntokens: {app: {env: APP_TOKEN}}\n" + upstream("")
		for env, want := range map[string]string{"": "weir.yaml:3:11: hash_env: environment variable HASH is not set", "HASH=short": "weir.yaml:3:11: hash_env: environment variable HASH: is shorter"} {
			p := served.Launch(t, file, env)
			if err := p.Exited(); err == nil || !strings.Contains(p.Log(), want) || !strings.Contains(p.Log(), "weir.yaml:4:") {
				t.Errorf("serve with %q: %v: %s", env, err, p.Log())
			}
			if out, _ := served.Say(t, []string{env}, "check", p.File); !strings.Contains(out, want) {
				t.Errorf("check with %q: %s", env, out)
			}
		}
	})
	t.Run("no credentials", func(t *testing.T) {
		home := t.TempDir()
		w := served.Start(t, local+upstream(", aws: {service: s3, region: eu-west-1}"), "AWS_EC2_METADATA_DISABLED=true", "HOME="+home)
		w.WaitFor("trouble")
		say(t, w.Serve.Listen, request("GET", "/s3/bucket/key", w.Serve.Listen, ""))
		ready := get(t, "http://"+w.Serve.Admin+"/readyz")
		if said := text(ready); ready.StatusCode != http.StatusServiceUnavailable || !strings.Contains(said, "credentials of upstream s3") {
			t.Errorf("readyz: %s %s", ready.Status, said)
		}
		if out, _ := served.Say(t, nil, "status", "-admin", w.Serve.Admin); !strings.Contains(out, "PROBLEM with credentials of upstream s3") || !strings.Contains(out, "AWS_ACCESS_KEY_ID") {
			t.Errorf("status: %s", out)
		}
		metrics := text(get(t, "http://"+w.Serve.Admin+"/metrics"))
		if counted(metrics, `class="rejected"`) || counted(metrics, `result="rejected"`) || !counted(metrics, `class="unsent"`) {
			t.Errorf("metrics: %s", grep(metrics, "_total{"))
		}
		if out, code := served.Say(t, []string{"AWS_EC2_METADATA_DISABLED=true", "HOME=" + home}, "check", "-connect", w.File); code == 0 || !strings.Contains(out, "aws of upstream s3") {
			t.Errorf("check -connect: %d %s", code, out)
		}
		inJSON(t, w)
	})
	t.Run("credentials are there", func(t *testing.T) {
		keys := filepath.Join(t.TempDir(), "credentials")
		write := func(s string) {
			if err := os.WriteFile(keys, []byte(s), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("[default]\naws_access_key_id = AKWEIR\naws_secret_access_key = of-weir\n")
		w := served.Start(t, local+upstream(", aws: {service: s3, region: eu-west-1}")+bystander(t), "AWS_EC2_METADATA_DISABLED=true", "AWS_SHARED_CREDENTIALS_FILE="+keys)
		if ready := get(t, "http://"+w.Serve.Admin+"/readyz"); ready.StatusCode != http.StatusOK || strings.Contains(text(ready), "trouble") {
			t.Errorf("readyz with credentials: %s", ready.Status)
		}
	})
	t.Run("credentials are lost while it runs", func(t *testing.T) { loseCredentials(t, upstream) })
	t.Run("a wrong password", func(t *testing.T) {
		r := servers.Redis(t)
		if _, err := r.Do("CONFIG", "SET", "requirepass", "the-right-one"); err != nil {
			t.Fatal(err)
		}
		file := local + fmt.Sprintf("store: {redis: %q, password_env: REDIS_PASSWORD}\n", r.URL()) + upstream(", limits: {all: 10/s}")
		w := served.Start(t, file, "REDIS_PASSWORD=the-wrong-one")
		w.WaitFor("store not reached")
		if !strings.Contains(w.Log(), "WRONGPASS") || strings.Contains(w.Log(), "the-wrong-one") {
			t.Errorf("log: %s", w.Log())
		}
		if out, _ := served.Say(t, nil, "status", "-admin", w.Serve.Admin); !strings.Contains(out, "WRONGPASS") {
			t.Errorf("status: %s", out)
		}
		if said := text(get(t, "http://"+w.Serve.Admin+"/readyz")); !strings.Contains(said, "store") {
			t.Errorf("readyz: %s", said)
		}
		if out, code := served.Say(t, []string{"REDIS_PASSWORD=the-wrong-one"}, "check", "-connect", w.File); code == 0 || !strings.Contains(out, "WRONGPASS") {
			t.Errorf("check -connect: %d %s", code, out)
		}
		inJSON(t, w)
	})
	t.Run("an empty store", func(t *testing.T) {
		state := filepath.Join(t.TempDir(), "state.db")
		if err := os.WriteFile(state, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w := served.Start(t, local+"store: {file: "+state+"}\n"+upstream(", limits: {all: 10/s}"))
		if !strings.Contains(w.Log(), "trouble") || !strings.Contains(w.Log(), state) {
			t.Errorf("log: %s", w.Log())
		}
		if out, _ := served.Say(t, nil, "status", "-admin", w.Serve.Admin); !strings.Contains(out, "PROBLEM with store "+state) {
			t.Errorf("status: %s", out)
		}
		if said := text(get(t, "http://"+w.Serve.Admin+"/readyz")); !strings.Contains(said, "problem with store") {
			t.Errorf("readyz: %s", said)
		}
		w.Signal(syscall.SIGTERM)
		_ = w.Exited()
	})
}

// loseCredentials makes a role's credentials expire while weir runs, and then restores them.
func loseCredentials(t *testing.T, upstream func(string) string) {
	var lost atomic.Bool
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if lost.Load() {
			http.Error(w, `{"code":"Gone","message":"the role is gone"}`, http.StatusForbidden)
			return
		}
		until := time.Now().Add(5*time.Minute + 2*time.Second) // the SDK renews them five minutes before
		fmt.Fprintf(w, `{"AccessKeyId":"AKWEIR","SecretAccessKey":"of-weir","Token":"t","Expiration":%q}`, until.UTC().Format(time.RFC3339))
	}))
	defer role.Close()
	w := served.Start(t, local+upstream(", aws: {service: s3, region: eu-west-1}"), "AWS_EC2_METADATA_DISABLED=true", "HOME="+t.TempDir(), "AWS_CONTAINER_CREDENTIALS_FULL_URI="+role.URL)
	call := func() int {
		return say(t, w.Serve.Listen, request("GET", "/s3/bucket/key", w.Serve.Listen, "")).StatusCode
	}
	ready := func() (int, string) {
		resp := get(t, "http://"+w.Serve.Admin+"/readyz")
		return resp.StatusCode, text(resp)
	}
	if status := call(); status != http.StatusOK {
		t.Fatalf("with credentials: %d: %s", status, w.Log())
	}
	lost.Store(true)
	w.WaitFor("trouble")
	eventually(t, func() bool { return call() != http.StatusOK })
	if status, said := ready(); status != http.StatusServiceUnavailable || !strings.Contains(said, "credentials of upstream s3") {
		t.Errorf("readyz: %d %s", status, said)
	}
	if out, _ := served.Say(t, nil, "status", "-admin", w.Serve.Admin); !strings.Contains(out, "PROBLEM with credentials of upstream s3") {
		t.Errorf("status: %s", out)
	}
	metrics := text(get(t, "http://"+w.Serve.Admin+"/metrics"))
	if counted(metrics, `class="rejected"`) || counted(metrics, `result="rejected"`) || !counted(metrics, `class="unsent"`) {
		t.Errorf("metrics: %s", grep(metrics, "_total{"))
	}
	lost.Store(false)
	w.WaitFor("problem solved")
	if status, said := ready(); status != http.StatusOK || call() != http.StatusOK {
		t.Errorf("readyz when they are back: %d %s", status, said)
	}
	inJSON(t, w)
}

// inJSON fails if a line of the log is not JSON.
func inJSON(t testing.TB, w *served.Process) {
	t.Helper()
	for line := range strings.Lines(w.Log()) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("a line that is not JSON: %s", line)
		}
	}
}

// counted reports whether a counter with the label is above 0.
func counted(metrics, label string) bool {
	for line := range strings.Lines(metrics) {
		if strings.Contains(line, label) && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
			return true
		}
	}
	return false
}
