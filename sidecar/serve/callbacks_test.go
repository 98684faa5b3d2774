package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	api "github.com/seed1158cd35/weir/sidecar/deliveries"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A delivery causes a callback to another upstream with its own credentials. Its submitter sees the callback. A direct
// call causes none.
func TestACallbackIsSignedAndDelivered(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	t.Setenv("APP_HOOK", secret)
	t.Setenv("APP_AUTHORIZATION", "Bearer of-the-app")
	app := &mailbox{T: t, status: 500}
	listens := httptest.NewServer(app)
	t.Cleanup(listens.Close)
	m := newMailboxIn(t, "{file: deliveries.db, callbacks: {app: {upstream: app, path: '/hooks/weir?x=1', secrets_env: APP_HOOK}}}", "true", `    deliver_callback: app
  app:
    url: `+listens.URL+`
    credentials: {Authorization: APP_AUTHORIZATION}
    deliver_schedule: messaging
    routes: [{path: /app/}]
`, "")
	m.post("/box/direct", "now")
	_, r, _ := m.post("/box/in", "hello", async, "X-Correlation-Id: c-1")
	m.becomes(r.ID, delivery.Completed)
	for len(app.letters()) == 0 {
		runtime.Gosched()
	}
	app.answers(204)
	for len(app.letters()) == 1 {
		runtime.Gosched()
	}
	app.mu.Lock()
	got, body := app.got[1], app.bodies[1]
	same := app.got[0].Header.Get("Webhook-Id") == got.Header.Get("Webhook-Id") && app.bodies[0] == body
	app.mu.Unlock()
	id := got.Header.Get("Webhook-Id")
	at, err := strconv.ParseInt(got.Header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	key, err := delivery.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	want := make(http.Header)
	delivery.Sign(want, id, time.Unix(at, 0), []byte(body), key)
	if !same || got.Method != "POST" || got.RequestURI != "/hooks/weir?x=1" || got.Header.Get("Webhook-Signature") != want.Get("Webhook-Signature") || got.Header.Get("Authorization") != "Bearer of-the-app" {
		t.Errorf("called back %s %s %v, the same %v", got.Method, got.RequestURI, got.Header, same)
	}
	var told struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(body), &told); err != nil || told.Data["id"] != r.ID || told.Data["answer"] != "done" || told.Data["correlation_id"] != "c-1" {
		t.Errorf("told %s, %v", body, err)
	}
	m.becomes(id, delivery.Completed)
	_, _, text2 := m.send("GET", proxy.DeliveriesPath+id, "")
	var whole api.Whole
	if err := json.Unmarshal([]byte(text2), &whole); err != nil || whole.Tells != r.ID || whole.Callback != "app" || strings.Contains(text2, "Signature") {
		t.Errorf("the callback shows as %s, %v", text2, err)
	}
	if n := len(app.letters()); n != 2 {
		t.Errorf("called back %d times", n)
	}
}

// Callbacks change only at a start. A reload that would break them is refused with advice.
func TestAReloadKeepsCallbacks(t *testing.T) {
	t.Setenv("APP_HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	file := filepath.Join(t.TempDir(), "weir.yaml")
	says := func(tells, callback, app string) {
		t.Helper()
		put(t, file, fmt.Sprintf(`listen: 127.0.0.1:0
admin: off
deliveries: {file: deliveries.db, callbacks: {%[2]s: {upstream: %[3]s, secrets_env: APP_HOOK}}}
upstreams: {box: {url: 'http://box.test', %[1]s}, %[3]s: {url: 'http://app.test'}}
`, tells, callback, app))
	}
	says("deliver_callback: done", "done", "app")
	s := startWith(t, file, os.LookupEnv)
	for _, of := range [][3]string{
		{"over", "app", `upstreams.box.deliver_callback: callback "over" is not available until a restart`},
		{"done", "other", `upstreams.box.deliver_callback: "done" calls upstream "app" until a restart`},
	} {
		says("deliver_callback: "+of[0], of[0], of[1])
		if err := s.ask(t.Context(), "a test"); err == nil || !strings.Contains(err.Error(), of[2]) || !strings.HasSuffix(err.Error(), "or restart weir") {
			t.Errorf("%v: %v", of, err)
		}
	}
	says("", "over", "other") // no new delivery has a callback
	if err := s.ask(t.Context(), "a test"); err != nil {
		t.Error(err)
	}
}
