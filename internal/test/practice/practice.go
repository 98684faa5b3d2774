// Package practice is an upstream to practise on. It is strict and it breaks, as
// real ones do, but by the clock and in the open: a token bucket, 503 for
// whatever is beyond it, and an outage in which every request fails. It counts
// all that arrives, so that what a client did to it can be read from its side.
package practice

import (
	"net/http"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Settings say how an upstream behaves. Instants are counted from its start.
type Settings struct {
	Rate  bucket.Rate   // what it bears; the bucket is full at the start
	Takes time.Duration // to serve a request; refusals and failures come at once

	OutageFrom time.Duration
	OutageTo   time.Duration // not after OutageFrom means that there is none

	Keep time.Duration // how long it counts by slots; afterwards only in total
}

// An Upstream is an http.Handler that answers as its settings say, whatever it
// is asked. It is safe for concurrent use.
type Upstream struct {
	settings Settings
	start    time.Time

	mu     sync.Mutex
	line   bucket.Line
	state  bucket.State
	counts counts
}

// New is an upstream whose time began at start. The rate must be valid.
func New(s Settings, start time.Time) *Upstream {
	u := &Upstream{settings: s, start: start, line: bucket.NewLine(0, s.Rate)}
	u.state = u.line.Fresh(0)
	u.counts.keep = int(s.Keep / Slot)
	return u
}

// ServeHTTP judges a request as it arrives and answers it.
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

// A verdict is what becomes of a request.
type verdict uint8

const (
	served verdict = iota
	refused
	failed
)

// arrive reads the clock under the lock: arrivals are judged in the order of
// their instants.
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

// Total is what has arrived so far.
func (u *Upstream) Total() Tally {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts.total
}

// Slots is the same by slots of time, from the start to the latest that had an
// arrival.
func (u *Upstream) Slots() []Tally {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Tally(nil), u.counts.slots...)
}
