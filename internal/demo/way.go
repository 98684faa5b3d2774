package demo

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/practice"
	"github.com/seed1158cd35/weir/proxy"
)

// A way is one of the two ways in which the load is sent.
type way struct {
	title    string
	upstream *practice.Upstream
	client   *http.Client
	url      string
	attempts int // that the client makes by itself

	mu        sync.Mutex
	ends      []end
	succeeded int
}

// An end is how a call ended.
type end struct {
	at   time.Duration // since the start
	took time.Duration // since it was due
	answer
}

type answer struct {
	ok         bool
	turnedAway bool // by weir, without an attempt
}

// patience is how long a client waits for one answer.
const patience = 10 * time.Second

func newClient(workers int) *http.Client {
	return &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{MaxIdleConns: workers, MaxIdleConnsPerHost: workers, IdleConnTimeout: time.Minute},
	}
}

// call makes a call as programs do that know of no limit: up to so many attempts,
// each twice as long after the last as that one, whatever the answer was.
func (w *way) call(ctx context.Context) end {
	var a answer
	wait := 100 * time.Millisecond
	for attempt := range w.attempts {
		if attempt > 0 {
			if clock.System.Sleep(ctx, wait) != nil {
				break
			}
			wait *= 2
		}
		if a = w.get(ctx); a.ok {
			break
		}
	}
	return end{answer: a}
}

func (w *way) get(ctx context.Context) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return answer{}
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{}
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return answer{ok: resp.StatusCode == http.StatusOK && err == nil, turnedAway: resp.Header.Get(proxy.RefusedHeader) != ""}
}

func (w *way) note(e end) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, e)
	if e.ok {
		w.succeeded++
	}
}

func (w *way) ended() []end {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ends)
}

// lately is the share of calls that succeeded of those that ended since the
// instant, or below 0 if none did. Calls are noted nearly in the order in which
// they end.
func (w *way) lately(since time.Duration) (share float64, calls, succeeded int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	good, all := 0, 0
	for i := len(w.ends) - 1; i >= 0 && w.ends[i].at >= since; i-- {
		if all++; w.ends[i].ok {
			good++
		}
	}
	if all == 0 {
		return -1, len(w.ends), w.succeeded
	}
	return float64(good) / float64(all), len(w.ends), w.succeeded
}
