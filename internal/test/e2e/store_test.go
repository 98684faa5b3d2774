package e2e

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// A store is S3 behind a strict token bucket, with a switch for outages. It records every request.
type store struct {
	url     string
	s3      http.Handler
	started time.Time

	mu     sync.Mutex
	rate   float64 // requests per second; 0 means no limit
	burst  float64
	tokens float64
	filled time.Time
	down   bool
	delay  func() time.Duration // duration of a request; nil means none
	seen   []arrival
	ids    map[string]bool // correlation IDs

	path    string // its requests wait until release is closed
	arrived chan bool
	release chan bool
}

// hold delays requests for a path until release is closed.
func (s *store) hold(path string) (arrived <-chan bool, release chan<- bool) {
	s.path, s.arrived, s.release = path, make(chan bool, 100), make(chan bool)
	return s.arrived, s.release
}

// saw reports whether a call arrived.
func (s *store) saw(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

// An arrival is one request at the store.
type arrival struct {
	at      time.Duration // since the start
	refused bool          // for rate
	broken  bool          // it arrived during an outage
}

// newStore starts a store with a rate and a burst.
func newStore(t testing.TB, rate, burst float64) *store {
	s := emptyStore(rate, burst)
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func emptyStore(rate, burst float64) *store {
	s3 := gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog()))
	now := time.Now()
	return &store{s3: s3.Server(), started: now, rate: rate, burst: burst, tokens: burst, filled: now, ids: make(map[string]bool)}
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, wait := s.admit(r)
	if wait > 0 {
		time.Sleep(wait)
	}
	switch {
	case a.broken:
		refuse(w, http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
	case a.refused:
		refuse(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
	case s.path != "" && r.URL.Path == s.path:
		s.arrived <- true
		select {
		case <-s.release:
		case <-r.Context().Done():
		}
	default:
		s.s3.ServeHTTP(w, r)
	}
}

// admit takes a token if there is one, and returns the duration of the request.
func (s *store) admit(r *http.Request) (a arrival, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	a.at = now.Sub(s.started)
	if s.delay != nil {
		wait = s.delay()
	}
	s.tokens = min(s.burst, s.tokens+s.rate*now.Sub(s.filled).Seconds())
	s.filled = now
	switch {
	case s.down:
		a.broken = true
	case s.rate > 0 && s.tokens < 1:
		a.refused = true
	default:
		s.tokens--
	}
	s.seen = append(s.seen, a)
	s.ids[r.Header.Get("X-Correlation-Id")] = true
	return a, wait
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message><RequestId>1</RequestId></Error>", code, message)
}

// outage turns the outage on or off.
func (s *store) outage(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = on
}

// A tally counts arrivals in a time.
type tally struct {
	Taken, Refused, Broken int
}

// refusedShare returns the share of attempts that were refused for their rate.
func (t tally) refusedShare() float64 {
	return float64(t.Refused) / float64(max(1, t.Taken+t.Refused))
}

// between counts the arrivals between two times.
func (s *store) between(from, to time.Duration) (t tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.seen {
		switch {
		case a.at < from || a.at >= to:
		case a.broken:
			t.Broken++
		case a.refused:
			t.Refused++
		default:
			t.Taken++
		}
	}
	return t
}

func (s *store) now() time.Duration { return time.Since(s.started) }

// trace returns the arrivals, second by second.
func (s *store) trace() string {
	out := "second: taken/refused/broken:"
	for from := time.Duration(0); from < s.now(); from += time.Second {
		t := s.between(from, from+time.Second)
		out += fmt.Sprintf(" %d/%d/%d", t.Taken, t.Refused, t.Broken)
	}
	return out
}
