package serve

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

// whole is a file with all fields that a reload changes, including rules for Envoy.
const whole = `
listen: 127.0.0.1:0
admin: off
decide: {listen: 127.0.0.1:0, grpc: 127.0.0.1:0, rules: rules.yaml}
upstreams:
  drs: {url: "https://drs.example", aws: {service: drs, region: eu-west-1}, limits: {all: 7/s}}
  chat: {url: "https://chat.example", llm: {cascade: {tiers: [{message: "Sorry."}]}}}
`

// A failed reload changes nothing, even if parts of it are valid.
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
			s.models.cascades["chat"].Config(), s.connLimits[atCalls].Bounds()) + fmt.Sprintf("%p", s.decider.about.Load())
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

// A reload names the changes that need a restart, and the settings page shows the settings in force. All listeners
// apply the other changes.
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
	next := strings.NewReplacer("streams: 100", "streams: 7, requests: 9", "max: 20", "max: 19", "admin: localhost:0", "admin: elsewhere.test:0\nadmin_open: true\nhosts: [weir.test]").Replace(yaml)
	if err := os.WriteFile(file, []byte(next), 0o600); err != nil {
		t.Fatal(err)
	}
	s.reload <- syscall.SIGHUP
	if got := fmt.Sprint(s.log.waitFor(t, "reload: some changes need a restart, the others are applied")["changed"]); got != "[admin bounds.streams jobs]" {
		t.Errorf("named are %s", got)
	}
	s.log.waitFor(t, "reloaded")
	if b := s.connLimits[atCalls].Bounds(); b.Streams != 100 || b.Requests != 9 {
		t.Errorf("in force are %+v", b)
	}
	if got := ask("weir.test"); got != http.StatusOK {
		t.Errorf("a name that is new: %d", got)
	}
	if got := fmt.Sprint(s.access.hosts()); got != "[weir.test localhost]" {
		t.Errorf("the admin listener is called %s", got)
	}
}

// The authority for client certificates of decisions is reloaded, and does not need a restart.
func TestAReloadTakesOverWhoSignsForDecisions(t *testing.T) {
	dir := t.TempDir()
	keyPair(t, dir, 1)
	yaml := "listen: 127.0.0.1:0\nadmin: off\ntls: {cert: " + dir + "/cert.pem, key: " + dir + "/key.pem}\ndecide: {listen: 127.0.0.1:0}\nupstreams: {up: {url: \"https://up.example\"}}\n"
	file := filepath.Join(dir, "weir.yaml")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(yaml)
	s := startFile(t, file)
	put(strings.Replace(yaml, "decide: {", "decide: {client_ca: cert.pem, ", 1))
	s.reload <- syscall.SIGHUP
	if line := s.log.waitForAny(t, "reloaded", "reload: some changes need a restart, the others are applied"); line["msg"] != "reloaded" {
		t.Errorf("said to need a new start: %v", line["changed"])
	}
	if s.decider.auth.Load().ClientCAs == nil {
		t.Error("nobody is asked for a certificate")
	}
}

// The rules for callers are checked against the listeners in force, not against listeners that need a restart. A reload
// neither opens a listener to other machines nor requires certificates on one without TLS.
func TestAReloadIsJudgedByTheListenersInForce(t *testing.T) {
	dir := t.TempDir()
	keyPair(t, dir, 1)
	tls := "tls: {cert: " + dir + "/cert.pem, key: " + dir + "/key.pem}\n"
	const rest = "upstreams: {up: {url: \"https://up.example\"}}\n"
	const plain = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n" + rest
	for name, c := range map[string]struct{ before, after, why string }{
		"decide that everyone reaches loses its tokens": {plain + "decide: {listen: 0.0.0.0:0, tokens: {app: {env: APP}}}\n", plain + "decide: {listen: 127.0.0.1:0}\n", "decide"},
		"certificates at calls without tls":             {plain, plain + tls + "client_ca: cert.pem\n", "client_ca"},
		"certificates at decide without tls":            {plain + "decide: {listen: 127.0.0.1:0}\n", plain + tls + "decide: {listen: 127.0.0.1:0, client_ca: cert.pem}\n", "decide.client_ca"},
		"certificates at admin without tls":             {plain + tls, plain + tls + "admin_client_ca: cert.pem\n", "admin_client_ca"},
	} {
		file := filepath.Join(dir, "weir.yaml")
		put := func(text string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		put(c.before)
		s := startWith(t, file, func(name string) (string, bool) { return "0123456789abcdef0123", name == "APP" })
		put(c.after)
		s.reload <- syscall.SIGHUP
		line := s.log.waitForAny(t, "reloaded", "reload: nothing was changed")
		if got := fmt.Sprint(line["error"]); !strings.HasPrefix(got, c.why) {
			t.Errorf("%s: %s, want that of %s", name, got, c.why)
		}
	}
}

// A weir without deliveries refuses a file that stores requests or first answers. It would have to refuse all requests
// that it forwarded before.
func TestAReloadBringsNoDeliveries(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	says := func(route, fields string) {
		t.Helper()
		put(t, file, fmt.Sprintf(`listen: 127.0.0.1:0
admin: off
deliveries: {file: deliveries.db}
upstreams: {box: {url: 'http://box.test', routes: [{path: /box/%s}]%s}}
`, route, fields))
	}
	put(t, file, "listen: 127.0.0.1:0\nadmin: off\nupstreams: {box: {url: 'http://box.test'}}\n")
	s := startFile(t, file)
	for _, of := range [][2]string{
		{", deliver: true", ""},
		{", idempotency: keep", ""},
		{"", ", operations: {put: {methods: [PUT], deliver: always}}"},
		{"", ", operations: {put: {methods: [PUT], idempotency: keep}}"},
	} {
		says(of[0], of[1])
		if err := s.ask(t.Context(), "a test"); err == nil || !strings.HasPrefix(err.Error(), "upstreams.box: deliver and idempotency need deliveries, which are not available until a restart") {
			t.Errorf("%v: %v", of, err)
		}
	}
	says("", "")
	if err := s.ask(t.Context(), "a test"); err != nil {
		t.Error(err)
	}
}
