package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
)

// A once is a weir that stores first answers, with its upstream.
type once struct {
	*mailbox
	came   atomic.Int64
	answer atomic.Pointer[func(w http.ResponseWriter, n int64)]
}

// says sets the upstream's response to the n-th request.
func (o *once) says(answer func(w http.ResponseWriter, n int64)) { o.answer.Store(&answer) }

func newOnce(t *testing.T, route, fields string) *once {
	t.Helper()
	o := &once{mailbox: &mailbox{T: t, status: 200, file: filepath.Join(t.TempDir(), "weir.yaml")}}
	o.says(func(w http.ResponseWriter, n int64) {
		w.Header().Set("X-Number", fmt.Sprint(n))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "answer %d", n)
	})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		(*o.answer.Load())(w, o.came.Add(1))
	}))
	t.Cleanup(up.Close)
	o.begin(fmt.Sprintf(`listen: 127.0.0.1:0
admin: off
deliveries: {file: deliveries.db}
upstreams:
  box:
    url: %s
    routes: [{path: /box/, strip: true, idempotency: keep%s}]
    retry: {attempts: 1}
%s`, up.URL, route, fields))
	return o
}

// wants sends a request under a key.
func (o *once) wants(what, key, body string, status int, says string, headers ...string) *http.Response {
	o.Helper()
	resp, _, text := o.post("/box/x", body, append(headers, "Idempotency-Key: "+key)...)
	if resp.StatusCode != status || !strings.Contains(text, says) {
		o.Errorf("%s: %d %s, want %d %q", what, resp.StatusCode, text, status, says)
	}
	return resp
}

// The first answer under a key is replayed, also by the next weir. Different requests and different callers are
// separate. A request without a key is forwarded.
func TestTheFirstAnswerIsKept(t *testing.T) {
	o := newOnce(t, "", "")
	o.wants("the first", "k", "one", 201, "answer 1")
	for range 2 {
		again := o.wants("again", `"k"`, "one", 201, "answer 1")
		if again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("X-Number") != "1" || len(again.Header.Values("X-Correlation-Id")) != 1 {
			t.Errorf("again: %v", again.Header)
		}
		o.stop()
		o.start()
	}
	o.wants("another request", "k", "two", 422, "IDEMPOTENCY_KEY_REUSED")
	o.wants("another credential", "k", "one", 201, "answer 2", "Authorization: Bearer of-somebody-else")
	o.wants("the same credential", "k", "one", 201, "answer 2", "Authorization: Bearer of-somebody-else")
	o.wants("a key of 10 KB", strings.Repeat("k", 10<<10), "one", 400, "255 bytes")
	o.wants("a body over the bound", "large", strings.Repeat("x", delivery.MaxBody+1), 413, "first response is stored")
	for n := range 2 {
		if resp, _, text := o.post("/box/x", "one"); resp.StatusCode != 201 || text != fmt.Sprint("answer ", n+3) {
			t.Errorf("without a key: %d %s", resp.StatusCode, text)
		}
	}
	if o.stores("of-somebody-else") {
		t.Error("a credential is stored")
	}
}

// Answers that do not settle the call are not stored, and free the key. If the call may have been executed, the next
// response reports that its result is unknown.
func TestAnswersThatAreNotKept(t *testing.T) {
	for status, unknown := range map[int]bool{409: false, 425: false, 429: false, 500: true, 503: true} {
		o := newOnce(t, "", "    max_pause: 1ms")
		o.says(func(w http.ResponseWriter, n int64) {
			if n == 1 {
				w.WriteHeader(status)
				return
			}
			fmt.Fprintf(w, "answer %d", n)
		})
		o.wants("the first", "k", "one", status, "")
		if got := o.wants("again", "k", "one", 200, "answer 2").Header.Get("Weir-Idempotency"); (got == "unknown") != unknown {
			t.Errorf("after %d it says %q", status, got)
		}
		o.wants("once more", "k", "one", 200, "answer 2")
	}
	o := newOnce(t, ", idempotency_failed: keep", "")
	o.says(func(w http.ResponseWriter, n int64) { http.Error(w, fmt.Sprint("broken ", n), 500) })
	o.wants("the first", "k", "one", 500, "broken 1")
	o.wants("again", "k", "one", 500, "broken 1")

	o = newOnce(t, "", "    max_wait: off\n    limits: {calls: {rate: 1/h, burst: 1}}")
	o.wants("the first", "a", "one", 201, "answer 1")
	for range 2 {
		if resp := o.wants("a refusal of weir's", "b", "one", 429, "RATE_LIMIT_EXCEEDED"); resp.Header.Get("Idempotency-Replayed") != "" {
			t.Error("a refusal of weir's is kept")
		}
	}

	o = newOnce(t, "", "")
	o.says(func(w http.ResponseWriter, n int64) {
		_, _ = w.Write(make([]byte, delivery.MaxKept+1))
	})
	o.wants("a large answer", "k", "one", 200, "")
	o.wants("again", "k", "one", 409, "was not stored")
	if n := o.came.Load(); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// A second call during the first one is refused, or waits for the same answer.
func TestACallUnderWay(t *testing.T) {
	for route, want := range map[string]int{"": 409, ", idempotency_busy: wait": 200} {
		o := newOnce(t, route, "")
		began, goes := make(chan bool), make(chan bool)
		o.says(func(w http.ResponseWriter, n int64) {
			began <- true
			<-goes
			fmt.Fprintf(w, "answer %d", n)
		})
		ended := make(chan bool)
		go func() {
			defer close(ended)
			o.wants("the first", "k", "one", 200, "answer 1")
		}()
		<-began
		if want == 200 {
			go func() { goes <- true }()
			o.wants("the second", "k", "one", 200, "answer 1")
		} else {
			if resp := o.wants("the second", "k", "one", 409, "under way"); resp.Header.Get("Retry-After") == "" {
				t.Error("it does not say when to come back")
			}
			goes <- true
		}
		<-ended
	}
}

// If weir ends during a call, the next call takes over the key, and its response reports that the earlier result is
// unknown.
func TestACallThatNeverEnded(t *testing.T) {
	o := newOnce(t, "", "")
	began, goes := make(chan bool), make(chan bool)
	o.says(func(w http.ResponseWriter, n int64) {
		if n == 1 {
			began <- true
			<-goes
		}
		fmt.Fprintf(w, "answer %d", n)
	})
	ended := make(chan bool)
	go func() {
		defer close(ended)
		resp, err := http.DefaultClient.Do(keyed(t, o.run.Addr()))
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-began
	o.stop()
	<-ended
	close(goes)
	o.start()
	if got := o.wants("after it", "k", "one", 200, "answer 2").Header.Get("Weir-Idempotency"); got != "unknown" {
		t.Errorf("it says %q", got)
	}
	if resp := o.wants("again", "k", "one", 200, "answer 2"); resp.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("the answer is not kept")
	}
}

func keyed(t *testing.T, at string) *http.Request {
	r, err := http.NewRequest("POST", "http://"+at+"/box/x", strings.NewReader("one"))
	if err != nil {
		t.Error(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	return r
}
