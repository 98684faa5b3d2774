package export

import (
	"fmt"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/envoy"
)

const api = `
decide: {grpc: "127.0.0.1:8083", rules: rules.yaml}
upstreams:
  api:
    url: https://example.com/v1
    keys: {tenant: "header:X-Tenant", ip: remote, who: "query:user"}
    routes: [{path: /api/, strip: true}, {host: api.example, path: /v2}]
    operations: {list: {methods: [GET, HEAD], path: /v1/list}, write: {methods: [POST]}}
    limits:
      all: {rate: 1000/s, burst: 100}
      tenant: {rate: 50/min, burst: 10, scope: tenant, operations: list}
      ip: {amount: 25, every: day, zone: America/Los_Angeles, scope: ip}
      user: {rate: 9/30s, scope: who, operations: [write, default]}
`

func parsed(t *testing.T, text string) *config.File {
	t.Helper()
	f, err := config.Parse("weir.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func read[T any](t *testing.T, f File, err error) (to T) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(f.Text, &to); err != nil {
		t.Fatal(err)
	}
	return to
}

// side is the file for Envoy.
type side struct {
	Manager struct {
		Routes routeConfig `yaml:"route_config"`
	} `yaml:"http_connection_manager"`
	Clusters []cluster
}

// An ask is a request as far as its descriptors are concerned.
type ask struct {
	keys   map[string]string // present values by descriptor key
	remote string
}

// descriptors returns the descriptors that Envoy creates by the actions of a route.
func (a ask) descriptors(r route) (all []*common.RateLimitDescriptor) {
	for _, l := range r.Route.Limits {
		d := new(common.RateLimitDescriptor)
		add := func(key, value string) {
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		whole := true
		maybe := func(key string, skip bool) {
			value, there := a.keys[key]
			if there {
				add(key, value)
			}
			whole = whole && (there || skip)
		}
		for _, one := range l.Actions {
			switch {
			case one.Generic != nil:
				add(one.Generic.Key, one.Generic.Value)
			case one.Header != nil:
				maybe(one.Header.Key, one.Header.Skip)
			case one.Query != nil:
				maybe(one.Query.Key, one.Query.Skip)
			case one.Remote != nil:
				add("remote_address", a.remote)
			}
		}
		if whole {
			all = append(all, d)
		}
	}
	return all
}

// weir's rules match the descriptors that Envoy sends: each limit that counts an operation is found, with and without
// the key.
func TestEnvoyIsAnsweredByItsRules(t *testing.T) {
	f := parsed(t, api)
	written, err := EnvoyRules(f, EnvoyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := envoy.Parse("rules.yaml", written.Text)
	if err != nil {
		t.Fatalf("%v\n%s", err, written.Text)
	}
	s, err := envoy.New(envoy.Config{}, fleet.NewMemory(nil), envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Set(rules)
	file, err := Envoy(f, EnvoyOptions{})
	host := read[side](t, file, err).Manager.Routes.VirtualHosts[0]
	want := map[string]string{
		"api.list":    "1000 1 SECOND, 50 1 MINUTE, 25 1 DAY",
		"api.write":   "1000 1 SECOND, 25 1 DAY, 9 30 SECOND",
		"api.default": "1000 1 SECOND, 25 1 DAY, 9 30 SECOND",
	}
	for _, a := range []ask{{map[string]string{"tenant": "a", "who": "ann"}, "192.0.2.1"}, {nil, "192.0.2.2"}} {
		for _, r := range host.Routes {
			answer, err := s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "weir", Descriptors: a.descriptors(r)})
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, st := range answer.Statuses {
				l := st.CurrentLimit
				said = append(said, fmt.Sprint(l.GetRequestsPerUnit(), " ", max(1, l.GetUnitMultiplier().GetValue()), " ", l.GetUnit()))
			}
			if got := strings.Join(said, ", "); got != want[r.Name] {
				t.Errorf("%s with %v: %s, want %s", r.Name, a.keys, got, want[r.Name])
			}
		}
	}
	if len(host.Routes) != len(want) {
		t.Errorf("%d routes, want %d", len(host.Routes), len(want))
	}
}

// An unsupported limit is an error with its name and place.
func TestWhatARateLimitServiceCannotHold(t *testing.T) {
	for text, want := range map[string]string{
		"limits: {x: {rate: 5/min, shape: rolling}}":                            "weir.yaml:4: upstreams.api.limits.x: a rate limit service has no rolling windows",
		"limits: {x: {rate: 5/min, unit: tokens}}":                              "weir.yaml:4: upstreams.api.limits.x: a rate limit service has no limit by tokens",
		"limits: {x: {rate: 5/s, adaptive: true}}":                              "has no rates that learn",
		"limits: {x: {rate: 5/s, advertised: requests}}":                        "has no rates that the upstream advertises",
		"limits: {x: {rate: 5/250ms}}":                                          "has no windows of fractional seconds",
		"limits: {x: {rate: 5000000000/h}}":                                     "has no limit above 4294967295",
		"limits: {x: {amount: 5, every: hour, zone: Asia/Kolkata}}":             "has no windows shorter than a day with a zone",
		"keys: {who: caller}; limits: {x: {rate: 5/s, scope: who}}":             `has no key for the scope "who"`,
		"keys: {plan: 'header:P'}; limits: {x: {rate: 5/s, plans: {a: 2x}}}":    "has no plans",
		"concurrency: 5; limits: {x: 5/s}":                                      "weir.yaml:4: upstreams.api.concurrency: a rate limit service has no bound",
		"operations: {o: {path: /o, concurrency: 5}}; limits: {x: {rate: 5/s}}": "upstreams.api.operations.o: a rate limit service has no bound",
		"retry: {attempts: 2}":                                                  "the file has no limits to write",
	} {
		f := parsed(t, "upstreams:\n  api:\n    url: https://example.com\n    "+strings.ReplaceAll(text, "; ", "\n    "))
		file, err := EnvoyRules(f, EnvoyOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || file.Text != nil {
			t.Errorf("%s: %v\n%s, want %s", text, err, file.Text, want)
		}
		if strings.Contains(want, "file has") {
			continue
		}
		if file, err := Envoy(f, EnvoyOptions{Address: "weir:8083"}); err == nil || file.Text != nil {
			t.Errorf("%s: Envoy is to ask for what has no rule", text)
		}
	}
}

// The server of envoyproxy/ratelimit supports less.
func TestPlainRules(t *testing.T) {
	for limit, want := range map[string]string{
		"{amount: 5, every: day, zone: Asia/Kolkata}": "no zones",
		"{amount: 5, every: week}":                    "no calendar of weeks",
		"{amount: 5, every: month}":                   "no calendar of weeks and months",
		"{rate: 5/2m}":                                "no windows of several units",
		"{amount: 5, every: day}":                     "",
		"{rate: 5/min}":                               "",
	} {
		f := parsed(t, "upstreams: {api: {url: https://example.com, limits: {x: "+limit+"}}}")
		_, err := EnvoyRules(f, EnvoyOptions{Plain: true})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "envoyproxy/ratelimit has "+want) {
			t.Errorf("%s: %v, want %q", limit, err, want)
		}
		if _, err := EnvoyRules(f, EnvoyOptions{}); err != nil {
			t.Errorf("%s: weir's own: %v", limit, err)
		}
	}
}

// A bucket is not a window, so its export causes a warning.
func TestBucketsAreConvertedWithAWarning(t *testing.T) {
	f := parsed(t, api)
	file, err := EnvoyRules(f, EnvoyOptions{})
	if err != nil || len(file.Warnings) != 3 || !strings.Contains(file.Warnings[1], "weir.yaml:11: upstreams.api.limits.tenant: a bucket that fills at 50/min burst 10 becomes windows of 1m0s: up to 50") {
		t.Errorf("%v: %q", err, file.Warnings)
	}
}

func TestRoutesOfEnvoy(t *testing.T) {
	file, err := Envoy(parsed(t, api), EnvoyOptions{})
	hosts := read[side](t, file, err).Manager.Routes.VirtualHosts
	var got []string
	for _, h := range hosts {
		for _, r := range h.Routes {
			line := fmt.Sprint(h.Domains[0], " ", r.Name, " ", r.Match.Prefix, r.Match.Segments)
			for _, m := range r.Match.Headers {
				line += " " + m.Name + " " + m.String.Regex.Regex
			}
			got = append(got, fmt.Sprint(line, " -> ", r.Route.Rewrite.Pattern.Regex, " ", r.Route.Rewrite.Substitution, " at ", r.Route.Host))
		}
	}
	anywhere := []string{
		"* api.list /api/list :method GET|HEAD -> ^/api/? /v1/ at example.com",
		"* api.write /api :method POST -> ^/api/? /v1/ at example.com",
		"* api.default /api -> ^/api/? /v1/ at example.com",
	}
	want := append(anywhere, // below /v2 no forwarded path begins with /v1/list
		"api.example api.write /v2 :method POST -> ^/ /v1/ at example.com",
		"api.example api.default /v2 -> ^/ /v1/ at example.com")
	for _, line := range anywhere {
		want = append(want, strings.Replace(line, "*", "api.example", 1))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhereEnvoyFindsWeir(t *testing.T) {
	for at, want := range map[string]string{"": "", "weir:80": "", ":8083": "is not an address that Envoy can connect to", "0.0.0.0:8083": "is not an address that Envoy can connect to", "weir": "is not the address", "weir:0": "is not the address"} {
		_, err := Envoy(parsed(t, api), EnvoyOptions{Address: at})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", at, err, want)
		}
	}
	if _, err := Envoy(parsed(t, "upstreams: {api: {url: https://example.com, limits: {x: 5/s}}}"), EnvoyOptions{}); err == nil || !strings.Contains(err.Error(), "set decide.grpc") {
		t.Errorf("weir that does not answer: %v", err)
	}
	if _, err := Envoy(parsed(t, api), EnvoyOptions{Upstreams: []string{"apy"}}); err == nil || !strings.Contains(err.Error(), `no upstream "apy"`) {
		t.Errorf("an upstream that is not there: %v", err)
	}
}
