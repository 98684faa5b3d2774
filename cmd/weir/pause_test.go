package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// A sidecar runs in the process of the test.
type sidecar struct{ *served.Inside }

// start runs a sidecar in front of an upstream named up.
func start(t testing.TB, url, more string) sidecar {
	t.Helper()
	return sidecar{served.Begin(t, yamlOf(url, more))}
}

// order runs a command against the sidecar's admin address.
func (s sidecar) order(t testing.TB, args ...string) (out, complaint string, err error) {
	t.Helper()
	var o, c bytes.Buffer
	err = run(t.Context(), world{args: append(args, "-admin", s.Serve.Admin), out: &o, err: &c, env: noEnv})
	return o.String(), c.String(), err
}

// code returns the status of a request's response.
func (s sidecar) code(t testing.TB) int {
	t.Helper()
	code, _ := s.answer(t)
	return code
}

// answer returns the status and the refusal's reason. A limit of a fleet also refuses while its store is slow.
func (s sidecar) answer(t testing.TB) (code int, refused string) {
	t.Helper()
	resp, err := http.Get("http://" + s.Serve.Listen + "/up/")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("X-Weir-Refused")
}

// A pause that an upstream requested from one process applies to another with the same store, which shows it. Resuming or
// pausing at one applies to both.
func TestPausesAreSharedSeenAndLifted(t *testing.T) {
	t.Parallel()
	var throttles atomic.Bool
	var came atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		came.Add(1)
		if throttles.Load() {
			w.Header().Set("Retry-After", "94608000") // three years
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer upstream.Close()
	redis := servers.Redis(t)
	initStore(t, redis.URL())
	store := "store: {redis: \"" + redis.URL() + "\"}\n"
	a, b := start(t, upstream.URL, store), start(t, upstream.URL, store)
	eventually(t, "both serve", func() bool { return a.code(t) == 200 && b.code(t) == 200 })

	throttles.Store(true)
	if code := a.code(t); code != http.StatusTooManyRequests {
		t.Fatalf("answered %d", code)
	}
	throttles.Store(false)
	var r status.Report
	eventually(t, "the other hears", func() bool {
		out, _, err := b.order(t, "status", "-json")
		if err := errors.Join(err, json.Unmarshal([]byte(out), &r)); err != nil {
			t.Fatal(err)
		}
		return len(r.Upstreams[0].Pauses) > 0
	})
	before := came.Load()
	for range 20 {
		if a.code(t) != http.StatusTooManyRequests || b.code(t) != http.StatusTooManyRequests {
			t.Fatal("one goes on")
		}
	}
	if came.Load() != before {
		t.Errorf("%d requests came in the pause", came.Load()-before)
	}
	if p := r.Upstreams[0].Pauses; len(p) != 1 || p[0].Limit != "calls" || p[0].LeftMS <= 0 || p[0].LeftMS > 900_000 || p[0].By != a.Serve.Client {
		t.Errorf("it does not show the pause of a quarter of an hour, and who was told: %+v", p)
	}

	if out, _, err := b.order(t, "resume", "up", "-limit", "calls"); err != nil || out != "pauses ended: 1\nup has no pauses\n" {
		t.Errorf("%v: it says\n%s", err, out)
	}
	if _, refused := b.answer(t); refused == "paused" {
		t.Error("who resumed it is paused")
	}
	eventually(t, "who resumed it goes on", func() bool { return b.code(t) == 200 })
	eventually(t, "the other resumes", func() bool { return a.code(t) == 200 })

	out, _, err := a.order(t, "pause", "-for", "10m", "up")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "everything manual 10m0s") {
		t.Errorf("%v: it says\n%s", err, out)
	}
	eventually(t, "the other pauses", func() bool { _, refused := b.answer(t); return refused == "paused" })
	if out, _, err = b.order(t, "pause", "up", "-limit", "calls", "-here", "-json"); err != nil {
		t.Error(err)
	}
	var u status.Upstream
	if err := json.Unmarshal([]byte(out), &u); err != nil || len(u.Pauses) != 2 || u.Pauses[0].Reason != "manual here" || u.Pauses[1].By != a.Serve.Client {
		t.Errorf("%v: %s", err, out)
	}
	if out, _, err = b.order(t, "resume", "up"); err != nil || out != "pauses ended: 2\nup has no pauses\n" {
		t.Errorf("%v: it says\n%s", err, out)
	}
	eventually(t, "all resume", func() bool { return a.code(t) == 200 && b.code(t) == 200 })
	if a.WaitFor("resumed").By != "fleet" || b.WaitFor("paused").By != "fleet" {
		t.Error("the log does not say who said so")
	}
}

func TestOrdersThatCannotBe(t *testing.T) {
	t.Parallel()
	s := start(t, "http://127.0.0.1:1", "")
	for args, says := range map[string]string{
		"pause":                          "UPSTREAM is missing",
		"pause up down":                  `unexpected argument "down"`,
		"resume up -for 5m":              "unknown flag --for",
		"pause up -limit-key a":          "also set limit",
		"pause up -limit call":           `limit "call": unknown limit; want one of calls`,
		"pause down":                     `unknown upstream "down"`,
		"resume -limit calls -for 5m up": "unknown flag --for",
		"pause up -pool a -limit b":      "set at most one of them",
	} {
		out, complaint, err := s.order(t, strings.Fields(args)...)
		if err == nil || !strings.Contains(complaint+err.Error(), says) || out != "" {
			t.Errorf("weir %s: %v, %s%s, want %s", args, err, complaint, out, says)
		}
	}
	err := run(t.Context(), world{args: []string{"pause", "up", "-admin", "127.0.0.1:1"}, out: io.Discard, err: io.Discard, env: noEnv})
	if err == nil || !strings.Contains(err.Error(), "is weir serve running") {
		t.Errorf("nobody there: %v", err)
	}
}
