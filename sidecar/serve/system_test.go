package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/observe/notify"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A panicking handler is reported with the correlation ID of its call and panics again. A handler that only aborts its
// connection is not reported.
func TestAPanicIsToldWithItsCorrelationID(t *testing.T) {
	got := make(chan notify.Message, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m notify.Message
		_ = json.NewDecoder(r.Body).Decode(&m)
		got <- m
	}))
	defer hook.Close()
	env := map[string]string{"HOOK": hook.URL, "HOOK_SECRET": "0123456789abcdef0123"}
	e, err := newEscalation(&config.File{Notify: &config.Notify{WebhookEnv: "HOOK", WebhookSecretEnv: "HOOK_SECRET"}},
		func(name string) (string, bool) { v, ok := env[name]; return v, ok }, discard())
	if err != nil {
		t.Fatal(err)
	}
	defer e.close(discard())
	s := &Server{log: discard(), tells: e}
	panics := func(why any) (again any) {
		defer func() { again = recover() }()
		w := httptest.NewRecorder()
		w.Header().Set(httpx.CorrelationHeader, "call-7")
		defer s.broken(w)
		panic(why)
	}
	if why := panics(http.ErrAbortHandler); why != http.ErrAbortHandler {
		t.Errorf("a connection that is broken off ends with %v", why)
	}
	if why := panics("broken"); why != "broken" {
		t.Errorf("it panics on with %v", why)
	}
	select {
	case m := <-got:
		if m.Kind != notify.System || !strings.Contains(m.Detail, "correlation id call-7") {
			t.Errorf("told of %+v", m)
		}
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
}
