package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// refusedCall makes calls until weir refuses one, and brings the ID of its answer.
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
	t.Fatal("no call was refused")
	return ""
}

// People ask why a call was refused, by the ID of its answer: they see the limit, where the file has it, and what to change;
// after a reload, where it stands then.
func TestWhyACallWasRefused(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(up.Close)
	s := sidecar{served.Begin(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  up:\n    url: %s\n    max_wait: off\n    limits:\n      few: {rate: 1/h, burst: 1}\n", up.URL))}
	id := s.refusedCall(t)
	out, complaint, err := s.order(t, "why", id)
	for _, want := range []string{id + "  up", "refused by weir: rate_limited", "* limit few", "cost 1, left 0 of 1 requests", s.File + ":8", "If that was not wanted:\n  - limits.few ("} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q is missing in (%v, %s):\n%s", want, err, complaint, out)
		}
	}
	raw, _, err := s.order(t, "why", "-json", id)
	var e status.Explained
	if err != nil || json.Unmarshal([]byte(raw), &e) != nil || len(e.Calls) != 1 || e.Calls[0].Reason != "rate_limited" {
		t.Errorf("%v: %s", err, raw)
	}
	if out, _, err := s.order(t, "why", "nobody"); err == nil || !strings.Contains(err.Error(), `nothing is kept of "nobody"`) {
		t.Errorf("%q, %v", out, err)
	}
	if _, complaint, err := s.order(t, "why"); err == nil || !strings.Contains(complaint, "name the call by its ID") {
		t.Errorf("%q, %v", complaint, err)
	}
}

// A limit of a preset is found in the preset.
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
