package demo

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/play"
)

// A way is one of the two ways of a live story. It makes its machine callable over HTTP.
type way struct {
	title   string
	start   time.Duration
	machine *play.Machine
	log     *play.Log
	client  *play.Client
	web     *http.Client
	url     string
}

func newWay(title string, seed uint64, s *play.Story) *way {
	m := play.NewMachine(clock.System, rand.New(rand.NewPCG(seed, 1)), s)
	w := &way{title: title, start: clock.System.Now(), machine: m, log: play.NewLog(s, m)}
	w.web = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Minute}}
	w.client = &play.Client{Clock: clock.System, Patience: time.Second, Send: w.send}
	return w
}

// send makes an attempt over HTTP.
func (w *way) send(ctx context.Context, r play.Request) play.Reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return play.Reply{Final: true}
	}
	req.Header.Set("X-Tenant", r.Tenant)
	resp, err := w.web.Do(req)
	if err != nil {
		return play.Reply{}
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	ms, _ := strconv.ParseInt(resp.Header.Get("Retry-After-Ms"), 10, 64)
	return play.Reply{
		OK:    err == nil && resp.StatusCode == http.StatusOK,
		Final: resp.Header.Get("X-Should-Retry") == "false",
		After: time.Duration(ms) * time.Millisecond,
	}
}

func (w *way) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if w.machine.Call(r.Context(), 0) == nil {
		_, _ = io.WriteString(rw, "hello\n")
	}
}
