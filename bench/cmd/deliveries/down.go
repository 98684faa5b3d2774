package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// oneIsDown measures deliveries to an upstream while another one responds 503 and 10,000 deliveries wait for it: from their
// first attempts, and after the breaker has opened. The baseline has 10,000 deliveries that are not due, so that the file has
// the same size.
func (m *measure) oneIsDown(string) {
	const waiting = 10_000
	var asked atomic.Int64
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer down.Close()
	gone, err := url.Parse(down.URL)
	m.must(err)
	with := func(n int, due time.Time, settles time.Duration) func(*upstream) *fleet {
		return func(up *upstream) *fleet {
			s := m.openFile(m.file("down.db"))
			many := sync.WaitGroup{}
			for range callers {
				many.Go(func() {
					for range n / callers {
						r := request()
						r.Upstream, r.NotBefore = "gone", due
						_, _, err := s.Accept(context.Background(), r)
						m.must(err)
					}
				})
			}
			many.Wait()
			f := m.weirsOf(func(name string) *url.URL {
				if name == "gone" {
					return gone
				}
				to, err := url.Parse(up.URL)
				m.must(err)
				return to
			}, s)
			<-time.After(settles)
			return f
		}
	}
	const alone, other = "SQLite: pick-up at 300/s, p99 ms", "SQLite: the same beside 10,000 that are not due"
	const begins, beside = "SQLite: the same while 10,000 are first tried at an upstream that is down", "SQLite: the same while its breaker is open"
	for range 2 { // to balance the order
		m.pickUpAt(0.99, alone, with(0, time.Time{}, m.lasts/4))
		m.pickUpAt(0.99, other, with(waiting, time.Now().Add(time.Hour), m.lasts/4))
		m.pickUpAt(0.99, begins, with(waiting, time.Time{}, 0))
		m.pickUpAt(0.99, beside, with(waiting, time.Time{}, m.lasts/4))
		m.ratio("SQLite: p99 while the breaker of another upstream is open, to alone", beside, alone)
		m.ratio("SQLite: the same, to that beside 10,000 that are not due", beside, other)
	}
	m.is("SQLite: attempts at the one that is down", float64(asked.Load())/4)
	for _, name := range []string{other, begins, beside} {
		m.ratio("CPU to alone: "+name, "CPU of each, ms: "+name, "CPU of each, ms: "+alone)
	}
}
