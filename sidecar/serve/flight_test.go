package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A visitor is a request at the upstream.
type visitor struct {
	path string
	gone <-chan struct{}
	go_  chan string // the response to send
}

// A hall is a sidecar in a bubble, in front of an upstream that responds on command.
type hall struct {
	*testing.T
	n        *memnet.Network
	server   *Server
	visitors chan *visitor
	client   *http.Client
}

func newHall(t *testing.T, fields string) (h *hall, stop func()) {
	h = &hall{T: t, n: memnet.New(), visitors: make(chan *visitor, 10)}
	url := h.n.Serve("api.test", http.HandlerFunc(h.upstream))
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := "listen: localhost:80\nadmin: off\nupstreams:\n  up:\n    url: " + url + "\n    concurrency: auto\n    timeouts: {headers: 1h, attempt: 1h, call: 1h}\n" + fields
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(file, Options{Log: io.Discard, Env: noEnv, Listen: h.n.Hear, Dial: h.n.Dial})
	if err != nil {
		t.Fatal(err)
	}
	h.server = s
	h.client = &http.Client{Transport: h.n.Transport()}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, nil, nil) }()
	return h, func() {
		cancel()
		h.n.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func (h *hall) upstream(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	v := &visitor{r.URL.Path, r.Context().Done(), make(chan string, 10)}
	h.visitors <- v
	for {
		select {
		case text := <-v.go_:
			if text == "" {
				return
			}
			if strings.HasPrefix(text, "data:") {
				w.Header().Set("Content-Type", "text/event-stream")
			} else {
				w.Header().Set("Content-Type", "application/json")
			}
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
		case <-v.gone:
			return
		}
	}
}

// sends makes a call and returns the request at the upstream. The caller disconnects after the time in leaves.
func (h *hall) sends(method, path, body string, leaves time.Duration) (v *visitor, ended chan error) {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), leaves)
	req, _ := http.NewRequestWithContext(ctx, method, "http://localhost/up"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	ended = make(chan error, 1)
	go func() {
		defer cancel()
		resp, err := h.client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 200 {
				err = fmt.Errorf("status %d", resp.StatusCode)
			}
		}
		ended <- err
	}()
	synctest.Wait()
	select {
	case v = <-h.visitors:
	default:
		h.Fatal("the upstream was not called")
	}
	return v, ended
}

func (h *hall) flight() (f weir.FlightView) {
	h.Helper()
	synctest.Wait()
	for _, f := range h.server.upstreams()["up"].Look(0).Flights {
		if f.InFlight > 0 {
			return f
		}
	}
	return f
}

func (v *visitor) left() bool {
	synctest.Wait()
	select {
	case <-v.gone:
		return true
	default:
		return false
	}
}

const (
	chatting  = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	streaming = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`
	said      = `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	word      = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"}}]}` + "\n\n"
)

// When the caller disconnects, calls that cost money or have effects end. Calls that only read continue, so that weir
// sees their response. Both hold their slot until a later call gets a response, or for half a minute.
func TestACallerWhoLeavesThroughTheSidecar(t *testing.T) {
	const llm = "    llm: {}\n"
	for _, c := range []struct {
		name, fields, method, path, body, answer string
		goesOn                                   bool
	}{
		{"a model", llm, "POST", "/v1/chat/completions", chatting, said, false},
		{"a model that streams, before its first word", llm, "POST", "/v1/chat/completions", streaming, "", false},
		{"a request that is not safe", "", "POST", "/x", "", "{}", false},
		{"a request with a body", "", "PUT", "/x", "{}", "{}", false},
		{"a request that is safe", "", "GET", "/x", "", "{}", true},
	} {
		for _, later := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/answered later %v", c.name, later), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, stop := newHall(t, c.fields)
					defer stop()
					v, ended := h.sends(c.method, c.path, c.body, time.Second)
					if err := <-ended; err == nil {
						t.Fatal("it was answered")
					}
					if v.left() == c.goesOn {
						t.Errorf("ended at the upstream: %v", !c.goesOn)
					}
					if f := h.flight(); f.InFlight != 1 || f.Held != 1 {
						t.Errorf("%+v, want a slot that is held", f)
					}
					if !later {
						time.Sleep(30 * time.Second)
						if f := h.flight(); f.InFlight != 0 || !v.left() {
							t.Errorf("after half a minute: %+v, ended %v", f, v.left())
						}
						return
					}
					other, ended := h.sends("GET", "/x", "", time.Minute)
					if strings.Contains(c.fields, "llm") { // a separate operation
						other.go_ <- ""
						<-ended
						other, ended = h.sends("POST", "/v1/chat/completions", chatting, time.Minute)
						other.go_ <- said
					}
					other.go_ <- ""
					if err := <-ended; err != nil {
						t.Error(err)
					}
					if f := h.flight(); f.InFlight != 0 || !v.left() {
						t.Errorf("after the answer to a later call: %+v, ended %v", f, v.left())
					}
				})
			})
		}
	}
}

// A stream that has begun no longer counts as in flight, however long it lasts, and ends with its caller.
func TestAStreamThroughTheSidecarIsNotInFlight(t *testing.T) {
	for _, c := range []struct{ name, fields, method, path, body, first string }{
		{"of a model", "    llm: {}\n", "POST", "/v1/chat/completions", streaming, word},
		{"of events", "", "GET", "/x", "", word},
		{"of bytes", "", "GET", "/x", "", "[1,"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, stop := newHall(t, c.fields)
				defer stop()
				v, ended := h.sends(c.method, c.path, c.body, 10*time.Second)
				if f := h.flight(); f.InFlight != 1 {
					t.Errorf("before it begins: %+v", f)
				}
				time.Sleep(time.Second)
				v.go_ <- c.first
				if f := h.flight(); f.InFlight != 0 {
					t.Errorf("while it goes on: %+v", f)
				}
				if <-ended == nil || !v.left() {
					t.Errorf("it goes on when its caller has left")
				}
				if f := h.flight(); f.InFlight != 0 || f.Held != 0 {
					t.Errorf("after it: %+v", f)
				}
			})
		})
	}
}
