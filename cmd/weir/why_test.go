package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/callid"
	"github.com/seed1158cd35/weir/internal/test/delayproxy"
	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// refusedCall makes calls until weir refuses one, and returns the ID in the response.
func (s sidecar) refusedCall(t *testing.T) string {
	t.Helper()
	for range 20 {
		resp, err := http.Get("http://" + s.Serve.Listen + "/up/")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.Header.Get("X-Weir-Refused") != "" {
			return resp.Header.Get("X-Correlation-Id")
		}
	}
	t.Fatal("calls are no longer refused")
	return ""
}

// why explains a refused call by the ID in its response: the limit, its line in the file, and a change. After a reload it uses
// the new line.
func TestWhyACallWasRefused(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(up.Close)
	s := sidecar{served.Begin(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  up:\n    url: %s\n    max_wait: off\n    limits:\n      few: {rate: 1/h, burst: 1}\n", up.URL))}
	id := s.refusedCall(t)
	out, complaint, err := s.order(t, "why", id)
	for _, want := range []string{id + "  up", "refused by weir: rate_limited", "* limit few", "cost 1, left 0 of 1 requests", s.File + ":8", "What you can change:\n  - limits.few ("} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q is missing in (%v, %s):\n%s", want, err, complaint, out)
		}
	}
	raw, _, err := s.order(t, "why", "-json", id)
	var e status.Explained
	if err != nil || json.Unmarshal([]byte(raw), &e) != nil || len(e.Calls) != 1 || e.Calls[0].Reason != "rate_limited" {
		t.Errorf("%v: %s", err, raw)
	}
	if !strings.Contains(out, "\n  Decisions in the second in which it ended:\n") || !strings.Contains(out, "rate_limited") {
		t.Errorf("what else was decided is missing in:\n%s", out)
	}
	if out, _, err := s.order(t, "why", "nobody"); err == nil || !strings.Contains(err.Error(), `no record of "nobody"`) {
		t.Errorf("%q, %v", out, err)
	}
	if _, complaint, err := s.order(t, "why"); err == nil || !strings.Contains(complaint, "ID is missing") {
		t.Errorf("%q, %v", complaint, err)
	}
}

// A limit of a preset is located in the preset.
func TestWhyNamesThePreset(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(up.Close)
	s := sidecar{served.Begin(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  up:\n    url: %s\n    preset: s3\n", up.URL))}
	resp, err := http.Get("http://" + s.Serve.Listen + "/up/bucket/key")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	out, complaint, err := s.order(t, "why", resp.Header.Get("X-Correlation-Id"))
	if err != nil || !strings.Contains(out, "rejected") || !strings.Contains(out, "preset s3 ("+s.File+":6)") {
		t.Errorf("%v %s:\n%s", err, complaint, out)
	}
}

// For a call that was not recorded, why reports the decisions of its second with the lines of the configuration. The ID
// contains the second. Other IDs are reported as such.
func TestWhyOfACallThatWasNotKept(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(up.Close)
	s := sidecar{served.Begin(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  up:\n    url: %s\n    max_wait: off\n    limits:\n      few: {rate: 1/h, burst: 1, scope: user}\n    keys: {user: \"header:X-User\"}\n", up.URL))}
	id := s.refusedCall(t)
	at, ok := callid.Second(id)
	if !ok {
		t.Fatalf("the ID %s has no second", id)
	}
	other := callid.New(at)
	eventually(t, "the second is over", func() bool { return time.Since(at) > 1100*time.Millisecond })
	for _, args := range [][]string{{"why", other}, {"why", "-at", at.UTC().Format(time.RFC3339), "of-somebody"}} {
		out, complaint, err := s.order(t, args...)
		for _, want := range []string{"No record of " + args[len(args)-1], "(" + at.UTC().Format(time.RFC3339) + "), with lines of the current configuration", "rate_limited  by limit few of each user", "1/h burst 1", s.File + ":8"} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%v: %q is missing in (%v, %s):\n%s", args, want, err, complaint, out)
			}
		}
	}
	if out, _, err := s.order(t, "why", "-at", "yesterday", "x"); err == nil || !strings.Contains(err.Error(), `at "yesterday": want a time`) {
		t.Errorf("%q, %v", out, err)
	}
	if out, _, err := s.order(t, "why", callid.New(at.Add(-2*time.Hour))); err == nil || !strings.Contains(err.Error(), "no record of") {
		t.Errorf("%q, %v", out, err)
	}
}

// Any process of a fleet can explain a call, also after the process that made it has ended.
func TestWhyIsKnownToTheFleet(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(up.Close)
	redis := servers.Redis(t)
	initStore(t, redis.URL())
	yaml := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: %q}\nupstreams: {up: {url: %q, max_wait: off, limits: {few: {rate: 1/h, burst: 1}}}}\n", redis.URL(), up.URL)
	one, two := sidecar{served.Begin(t, yaml)}, sidecar{served.Begin(t, yaml)}
	id := one.refusedCall(t)
	known := func() bool {
		out, _, err := two.order(t, "why", id)
		return err == nil && strings.Contains(out, "refused by weir: rate_limited") && strings.Contains(out, "\n  handled by process ") && strings.Contains(out, "limits.few")
	}
	eventually(t, "the other weir knows it", known)
	if out, _, err := one.order(t, "why", id); err != nil || strings.Count(out, "refused by weir") != 1 {
		t.Errorf("its own, which the store has, too: %v\n%s", err, out)
	}
	last := one.refusedCall(t)
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if out, _, err := two.order(t, "why", last); err != nil || !strings.Contains(out, "refused by weir: rate_limited") {
		t.Errorf("the one that made it has ended: %q, %v", out, err)
	}
	redis.Stop()
	if out, _, err := two.order(t, "why", id); err != nil || !strings.Contains(out, "No record of ") || !strings.Contains(out, "There may be more calls with this ID: ") {
		t.Errorf("no store: %q, %v", out, err)
	}
	if out, _, err := two.order(t, "why", "of-somebody"); err == nil || !strings.Contains(err.Error(), "the store cannot be asked") {
		t.Errorf("no store: %q, %v", out, err)
	}
	own := two.refusedCall(t)
	if out, _, err := two.order(t, "why", own); err != nil || !strings.Contains(out, "There may be more calls with this ID: ") || !strings.Contains(out, own+"  up") {
		t.Errorf("its own, without a store: %q, %v", out, err)
	}
}

// A process that ends writes its recorded calls before it closes the store, also if the store is slow.
func TestWhyOfTheLastCallsOfAnEndedProcess(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(up.Close)
	redis := servers.Redis(t)
	initStore(t, redis.URL())
	far := delayproxy.New(t, redis.Addr(), delayproxy.Delay{Each: 60 * time.Millisecond})
	yaml := func(addr string) string {
		return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: \"redis://%s\"}\nupstreams: {up: {url: %q, max_wait: off, limits: {few: {rate: 1/h, burst: 1}}}}\n", addr, up.URL)
	}
	one, two := sidecar{served.Begin(t, yaml(far.Addr()))}, sidecar{served.Begin(t, yaml(redis.Addr()))}
	var ids []string
	for range 20 {
		ids = append(ids, one.refusedCall(t))
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if out, _, err := two.order(t, "why", id); err != nil || !strings.Contains(out, "refused by weir: rate_limited") {
			t.Fatalf("%s: %q, %v", id, out, err)
		}
	}
}
