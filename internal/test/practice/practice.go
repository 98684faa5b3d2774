// Package practice is a simulated upstream for experiments. It is strict and fails like real ones, but on schedule: it has a
// token bucket, responds 503 above its rate, and has an outage in which every request fails. It counts all requests, so that a
// client's behavior is visible from the upstream's side.
package practice

import (
	"net/http"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Settings configure an upstream. Times are relative to its start.
type Settings struct {
	Rate  bucket.Rate   // its limit; the bucket is full at the start
	Takes time.Duration // to serve a request; refusals and failures are immediate

	OutageFrom time.Duration
	OutageTo   time.Duration // not after OutageFrom means no outage

	Keep time.Duration // time for which it counts by slots; afterwards only totals
}

// An Upstream is an http.Handler that responds as its settings specify to any request. It is safe for concurrent use.
type Upstream struct {
	settings Settings
	start    time.Time

	mu     sync.Mutex
	line   bucket.Line
	state  bucket.State
	counts counts
}

// New returns an upstream that started at start. The rate must be valid.
func New(s Settings, start time.Time) *Upstream {
	u := &Upstream{settings: s, start: start, line: bucket.NewLine(0, s.Rate)}
	u.state = u.line.Fresh(0)
	u.counts.keep = int(s.Keep / Slot)
	return u
}

// ServeHTTP judges a request at its arrival and responds.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch u.arrive() {
	case failed:
		broken.write(w)
	case refused:
		slowDown.write(w)
	default:
		if clock.System.Sleep(r.Context(), u.settings.Takes) == nil {
			hello.write(w)
		}
	}
}

// A verdict is the result of a request.
type verdict uint8

const (
	served verdict = iota
	refused
	failed
)

// arrive reads the clock under the lock, so that arrivals are judged in order of time.
func (u *Upstream) arrive() verdict {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Since(u.start)
	v := u.judge(now)
	u.counts.note(now, v)
	return v
}

func (u *Upstream) judge(now time.Duration) verdict {
	if s := &u.settings; s.OutageFrom <= now && now < s.OutageTo {
		return failed
	}
	next, _, ok := u.state.Take(&u.line, now, 1)
	if !ok {
		return refused
	}
	u.state = next
	return served
}

// Total returns the count of all requests so far.
func (u *Upstream) Total() Tally {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts.total
}

// Slots returns the counts by slots of time, from the start to the latest slot with an arrival.
func (u *Upstream) Slots() []Tally {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Tally(nil), u.counts.slots...)
}
