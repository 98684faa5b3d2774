package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// whole is a file of all that a reload changes, with rules for Envoy beside it.
const whole = `
listen: 127.0.0.1:0
admin: off
decide: {listen: 127.0.0.1:0, grpc: 127.0.0.1:0, rules: rules.yaml}
upstreams:
  drs: {url: "https://drs.example", aws: {service: drs, region: eu-west-1}, limits: {all: 7/s}}
  chat: {url: "https://chat.example", llm: {cascade: {tiers: [{message: "Sorry."}]}}}
`

// A reload that fails has changed nothing, whatever of it could have been taken over.
func TestAReloadThatFailsChangesNothing(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const rules = "domain: edge\ndescriptors: [{key: tenant, rate_limit: {unit: hour, requests_per_unit: %s}}]\n"
	put("rules.yaml", fmt.Sprintf(rules, "2"))
	put("weir.yaml", whole)
	s := startFile(t, filepath.Join(dir, "weir.yaml"))
	seen := func() string {
		return fmt.Sprint(s.speaks.keys(), s.speaks.known, s.decider.auth.Load(), s.decider.envoy.Stats().Reloads, s.proxy.Upstreams()["drs"].Policy().Limits,
			s.models.cascades["chat"].Config(), s.crowds[atCalls].Bounds()) + fmt.Sprintf("%p", s.decider.about.Load())
	}
	other := strings.NewReplacer("drs:", "other:", "7/s", "9/s", "Sorry.", "Later.", "listen: 127.0.0.1:0\nadmin", "bounds: {requests: 7}\nlisten: 127.0.0.1:0\nadmin").Replace(whole)
	for name, bad := range map[string]struct{ yaml, rules string }{
		"prices that are not there": {"prices: gone.json\n" + other, fmt.Sprintf(rules, "2")},
		"bad rules for Envoy":       {other, fmt.Sprintf(rules, "many")},
	} {
		before := seen()
		put("rules.yaml", bad.rules)
		put("weir.yaml", bad.yaml)
		s.reload <- syscall.SIGHUP
		s.log.waitFor(t, "reload: nothing was changed")
		if after := seen(); after != before {
			t.Errorf("%s: before\n%s\nafter\n%s", name, before, after)
		}
	}
	put("rules.yaml", fmt.Sprintf(rules, "3"))
	put("weir.yaml", other)
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reloaded")
	if all := s.speaks.keys(); len(all) != 1 || all["other"] == nil || s.decider.envoy.Stats().Reloads == 0 {
		t.Errorf("a good one: keys of %v, %+v", all, s.decider.envoy.Stats())
	}
}

// What a reload does not take over is named, and what is in force is what is shown; the rest is taken over
// at every listener.
func TestAReloadNamesWhatItDoesNotTakeOver(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	const yaml = `
listen: 127.0.0.1:0
admin: localhost:0
decide: {listen: 127.0.0.1:0}
bounds: {streams: 100}
upstreams:
  drs: {url: "https://drs.example", aws: {service: drs, region: eu-west-1}, jobs: {max: 20}}
`
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startFile(t, file)
	ask := func(host string) int {
		r := httptest.NewRequest("GET", "/openapi.yaml", nil)
		r.Host = host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})))
		w := httptest.NewRecorder()
		s.decider.api.Handler().ServeHTTP(w, r)
		return w.Code
	}
	if got := ask("weir.test"); got != http.StatusMisdirectedRequest {
		t.Errorf("a name that nobody knows: %d", got)
	}
	next := strings.NewReplacer("streams: 100", "streams: 7, requests: 9", "max: 20", "max: 10", "admin: localhost:0", "admin: elsewhere.test:0\nadmin_open: true\nhosts: [weir.test]").Replace(yaml)
	if err := os.WriteFile(file, []byte(next), 0o600); err != nil {
		t.Fatal(err)
	}
	s.reload <- syscall.SIGHUP
	if got := fmt.Sprint(s.log.waitFor(t, "reload: these changes need a new start; the rest is taken over")["changed"]); got != "[admin bounds.streams jobs]" {
		t.Errorf("named are %s", got)
	}
	s.log.waitFor(t, "reloaded")
	if b := s.crowds[atCalls].Bounds(); b.Streams != 100 || b.Requests != 9 {
		t.Errorf("in force are %+v", b)
	}
	if got := ask("weir.test"); got != http.StatusOK {
		t.Errorf("a name that is new: %d", got)
	}
	if got := fmt.Sprint(s.access.hosts()); got != "[weir.test localhost]" {
		t.Errorf("the admin listener is called %s", got)
	}
}
