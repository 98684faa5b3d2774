package demo

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A way is one of the two ways of a live story.
type way struct {
	title   string
	machine *machine
	log     *log
	client  *client
	web     *http.Client
	url     string
}

func newWay(title string, seed uint64, s story) *way {
	m := newMachine(clock.System, rand.New(rand.NewPCG(seed, 1)), s.workers, s)
	w := &way{title: title, machine: m, log: newLog(s, m)}
	w.web = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Minute}}
	w.client = &client{clock: clock.System, chance: func(d time.Duration) time.Duration { return rand.N(d) }, send: w.send}
	return w
}

// send makes an attempt over HTTP.
func (w *way) send(ctx context.Context, tenant string) reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return reply{final: true}
	}
	req.Header.Set("X-Tenant", tenant)
	resp, err := w.web.Do(req)
	if err != nil {
		return reply{}
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	ms, _ := strconv.ParseInt(resp.Header.Get("Retry-After-Ms"), 10, 64)
	return reply{
		ok:    err == nil && resp.StatusCode == http.StatusOK,
		final: resp.Header.Get("X-Should-Retry") == "false",
		after: time.Duration(ms) * time.Millisecond,
	}
}

// ServeHTTP makes the machine callable over HTTP.
func (m *machine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.call(r.Context()) == nil {
		_, _ = io.WriteString(w, "hello\n")
	}
}
