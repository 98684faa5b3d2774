package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"
)

// A fakeNtfy implements ntfy's publish API, with the limits of ntfy.sh for visitors without an account.
type fakeNtfy struct {
	*httptest.Server
	got chan published // accepted messages

	mu     sync.Mutex
	bucket float64 // requests that are allowed now
	filled time.Time
	n      int
	play   func(n int, w http.ResponseWriter) bool // handles the n-th request itself if it returns true
}

// From docs.ntfy.sh/publish: a burst of 60 requests, and one more every five seconds.
const (
	visitorBurst = 60
	visitorEvery = 5 * time.Second
)

func newNtfy(t *testing.T) *fakeNtfy {
	f := &fakeNtfy{got: make(chan published, 1000), bucket: visitorBurst, filled: time.Now()}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

var topicName = regexp.MustCompile(`^[-_A-Za-z0-9]{1,64}$`)

func (f *fakeNtfy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	now := time.Now()
	f.bucket = min(visitorBurst, f.bucket+float64(now.Sub(f.filled))/float64(visitorEvery))
	f.filled = now
	f.n++
	n, play, over := f.n, f.play, f.bucket < 1
	if !over {
		f.bucket--
	}
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var p published
	switch err := json.NewDecoder(r.Body).Decode(&p); {
	case over:
		says(w, http.StatusTooManyRequests, 42901, "limit reached: too many requests")
	case play != nil && play(n, w):
	case r.Method != http.MethodPost || r.URL.Path != "/":
		says(w, http.StatusNotFound, 40401, "page not found")
	case err != nil:
		says(w, http.StatusBadRequest, 40024, "invalid request: request body must be message JSON")
	case !topicName.MatchString(p.Topic):
		says(w, http.StatusBadRequest, 40009, "invalid request: topic invalid")
	default:
		p.ID = fmt.Sprintf("ntfy%08d", n)
		_ = json.NewEncoder(w).Encode(map[string]any{"id": p.ID, "time": now.Unix(), "expires": now.Add(12 * time.Hour).Unix(), "event": "message", "topic": p.Topic, "title": p.Title, "message": p.Message, "tags": p.Tags})
		f.got <- p
	}
}

func says(w http.ResponseWriter, status, code int, text string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "http": status, "error": text, "link": "https://ntfy.sh/docs/publish/"})
}

// plays sets a function that handles requests instead. nil removes it.
func (f *fakeNtfy) plays(play func(n int, w http.ResponseWriter) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.play = play
}

// requests returns the number of requests.
func (f *fakeNtfy) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// hangsUp loses the response: it closes the connection after reading the request.
func hangsUp(_ int, w http.ResponseWriter) bool {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.Close()
	return true
}

func away(_ int, w http.ResponseWriter) bool {
	says(w, http.StatusServiceUnavailable, 50301, "down for maintenance")
	return true
}

// asNtfySh returns a transport that sends requests for ntfy.sh to the server, because messages to people contain the host name.
func (f *fakeNtfy) asNtfySh() http.RoundTripper {
	return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, f.Listener.Addr().String())
	}}
}
