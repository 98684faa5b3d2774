package endure

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A fault is a fault of a provider.
type fault struct {
	name string

	share     float64       // this share of the attempts fails
	from, to  time.Duration // all attempts in this time fail
	stall     bool          // instead, they wait until its end and succeed
	perSecond float64       // attempts per second that succeed, with a burst of a second

	throttled bool // a failure is a throttle, otherwise a 503
	after     int  // wait in seconds in a throttle
	outage    bool // it does not end
}

// A provider simulates the API from the time it was opened.
type provider struct {
	f     fault
	words words
	r     *rand.Rand
	start time.Time

	mu       sync.Mutex
	attempts int
	tokens   float64
	at       time.Duration // time of the last refill
}

// words are a provider's error formats and other parts of its responses.
type words struct {
	throttle, down answer
	always         map[string]string
}

type answer struct {
	status       int
	header, code string // the header with the code, if it is not in the body
	body         string
}

func open(f fault, w words, seed uint64) *provider {
	return &provider{f: f, words: w, r: rand.New(rand.NewPCG(seed, 1)), start: time.Now(), tokens: f.perSecond}
}

// decide reports whether an attempt succeeds, and its delay.
func (p *provider) decide() (good bool, kept time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts++
	now := time.Since(p.start)
	in := p.f.from <= now && now < p.f.to
	switch {
	case in && p.f.stall:
		return true, p.f.to - now
	case in, p.r.Float64() < p.f.share:
		return false, 0
	case p.f.perSecond > 0:
		p.tokens = min(p.f.perSecond, p.tokens+(now-p.at).Seconds()*p.f.perSecond)
		p.at = now
		if p.tokens < 1 {
			return false, 0
		}
		p.tokens--
	}
	return true, 0
}

const latency = 20 * time.Millisecond

// codeHeader has the error code for the simulated clients, which do not read bodies.
const codeHeader = "X-Played-Code"

// RoundTrip makes an attempt.
func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	good, kept := p.decide()
	if err := sleep(r.Context(), kept+latency); err != nil {
		return nil, err
	}
	a := answer{status: http.StatusOK, body: "{}"}
	switch {
	case good:
	case p.f.throttled:
		a = p.words.throttle
	default:
		a = p.words.down
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for k, v := range p.words.always {
		h.Set(k, v)
	}
	if a.code != "" {
		h.Set(codeHeader, a.code)
	}
	if a.header != "" {
		h.Set(a.header, a.code)
	}
	if !good && p.f.after > 0 {
		h.Set("Retry-After", strconv.Itoa(p.f.after))
	}
	return &http.Response{
		StatusCode: a.status, Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
