package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const rest = `
upstreams:
  api:
    url: https://example.com/prod
    keys: {tenant: "header:X-Tenant", user: "header:X-User"}
    operations: {list: {methods: [GET], path: /prod/v1/list}, both: {methods: [GET, PUT], path: /prod/b}, root: {methods: [GET], path: /prod/}}
    limits:
`

const socket = `
upstreams:
  chat:
    url: https://example.com
    keys: {user: "header:X-User"}
    operations: {connect: {path: /c}, sendMessage: {path: /s}}
    limits:
`

// with returns a file with limits, one per line.
func with(head string, limits ...string) string {
	return head + "      " + strings.Join(limits, "\n      ") + "\n"
}

// resource returns the properties of a template's resource.
func resource(t *testing.T, f File, err error, name, kind string) map[string]any {
	t.Helper()
	r := read[struct {
		Resources map[string]struct {
			Type       string         `yaml:"Type"`
			Properties map[string]any `yaml:"Properties"`
		} `yaml:"Resources"`
	}](t, f, err).Resources[name]
	if r.Type != kind {
		t.Fatalf("%s is a %q, want %s\n%s", name, r.Type, kind, f.Text)
	}
	return r.Properties
}

// positive reports settings without a rate or a burst, or with a field that is unknown to CloudFormation, whose own
// rules do not check that.
func positive(t *testing.T, where string, block any, rate, burst string, also ...string) {
	t.Helper()
	m, ok := block.(map[string]any)
	for _, name := range []string{rate, burst} {
		if v := fmt.Sprint(m[name]); !ok || m[name] == nil || strings.HasPrefix(v, "-") || v == "0" {
			t.Errorf("%s: %s is %v in %v", where, name, m[name], block)
		}
	}
	if _, whole := m[burst].(int); !whole {
		t.Errorf("%s: %s is no whole number: %v", where, burst, m[burst])
	}
	for name := range m {
		if name != rate && name != burst && !slices.Contains(also, name) {
			t.Errorf("%s: there is no %s", where, name)
		}
	}
}

func TestRESTAPI(t *testing.T) {
	f, err := APIGateway(parsed(t, with(rest, "all: {rate: 3000/s, burst: 300}", "tenant: {rate: 100/min, burst: 10, scope: tenant}",
		"tlist: {rate: 1/s, scope: tenant, operations: list}", "list: {rate: 200/s, operations: list}", "root: {rate: 20/s, operations: root}", "week: {amount: 25, every: week, scope: tenant}")), GatewayOptions{})
	plan := resource(t, f, err, "UsagePlan", "AWS::ApiGateway::UsagePlan")
	positive(t, "plan", plan["Throttle"], "RateLimit", "BurstLimit")
	if got := fmt.Sprint(plan["Throttle"], plan["Quota"]); got != "map[BurstLimit:10 RateLimit:1.6666666666666667] map[Limit:25 Period:WEEK]" {
		t.Errorf("the plan has %s", got)
	}
	methods := plan["ApiStages"].([]any)[0].(map[string]any)["Throttle"].(map[string]any)
	positive(t, "method", methods["/v1/list/GET"], "RateLimit", "BurstLimit")
	if len(methods) != 1 {
		t.Errorf("methods: %v", methods)
	}
	var got []string
	for _, one := range resource(t, f, err, "Stage", "AWS::ApiGateway::Stage")["MethodSettings"].([]any) {
		positive(t, "stage", one, "ThrottlingRateLimit", "ThrottlingBurstLimit", "ResourcePath", "HttpMethod")
		m := one.(map[string]any)
		got = append(got, fmt.Sprint(m["ResourcePath"], " ", m["HttpMethod"], " ", m["ThrottlingRateLimit"]))
	}
	if want := "/* * 3000, / GET 20, /~1v1~1list GET 200"; strings.Join(got, ", ") != want {
		t.Errorf("the stage has %v, want %s", got, want)
	}
	if all := strings.Join(f.Warnings, "\n"); !strings.Contains(all, "upstreams.api.limits.tenant: 100/min burst 10 becomes 1.66667 a second with a burst of 10, which differs from the limit") {
		t.Errorf("warnings:\n%s", all)
	}
}

func TestQuotaPeriods(t *testing.T) {
	for every, want := range map[string]string{"day": "DAY", "week": "WEEK", "month": "MONTH"} {
		f, err := APIGateway(parsed(t, with(rest, "q: {amount: 25, every: "+every+", scope: tenant}")), GatewayOptions{})
		if quota := resource(t, f, err, "UsagePlan", "AWS::ApiGateway::UsagePlan")["Quota"]; fmt.Sprint(quota) != "map[Limit:25 Period:"+want+"]" {
			t.Errorf("%s: %v", every, quota)
		}
	}
}

func TestWebSocketAPI(t *testing.T) {
	f, err := APIGateway(parsed(t, with(socket, "all: 500/s", "c: {rate: 5/s, operations: connect}", "s: {rate: 20/s, operations: sendMessage}", "d: {rate: 1/s, operations: default}")), GatewayOptions{WebSocket: true})
	stage := resource(t, f, err, "Stage", "AWS::ApiGatewayV2::Stage")
	positive(t, "default", stage["DefaultRouteSettings"], "ThrottlingRateLimit", "ThrottlingBurstLimit")
	routes := stage["RouteSettings"].(map[string]any)
	for name, one := range routes {
		positive(t, name, one, "ThrottlingRateLimit", "ThrottlingBurstLimit")
	}
	if got := fmt.Sprint(slices.Sorted(maps.Keys(routes))); got != "[$connect $default sendMessage]" {
		t.Errorf("routes: %s", got)
	}
}

// A limit that API Gateway does not support is an error with its place.
func TestWhatAPIGatewayCannotHold(t *testing.T) {
	for limit, want := range map[string]string{
		"x: {rate: 5/min, shape: rolling}":                                                      "weir.yaml:8: upstreams.api.limits.x: API Gateway has no rolling windows",
		"x: {rate: 5/min, unit: tokens}":                                                        "no limit by tokens",
		"x: {rate: 5/s, adaptive: true}":                                                        "no rates that learn",
		"x: {amount: 5, every: day, scope: tenant, zone: Asia/Kolkata}":                         "no time zones",
		"x: {amount: 5, every: hour, scope: tenant}":                                            "no quota by the hour",
		"x: {amount: 5, every: day}":                                                            "api has no limits to write",
		"x: {amount: 3000000000, every: day, scope: tenant}":                                    "no quota above",
		"x: {amount: 5, every: day, scope: tenant, operations: list}":                           "no quota of some operations",
		"x: {amount: 5, every: day, scope: tenant}; y: {amount: 5, every: week, scope: tenant}": "limits.y: API Gateway has no two quotas",
		"x: {rate: 5/s, scope: tenant}; y: {rate: 5/s, scope: user}":                            "limits.y: API Gateway has no limits by two scopes",
		"x: {rate: 5/s, burst: 9}; y: {rate: 6/s, burst: 6}":                                    "limits.y: API Gateway has no two throttles",
		"x: {rate: 5/s, operations: [list, both]}":                                              "no throttle over several operations",
		"x: {rate: 5/s, operations: both}":                                                      "no throttle for an operation without one path and one method",
		"x: {rate: 5/s, operations: default}":                                                   "no throttle for requests without an operation",
		"x: {rate: 20000/s}":                                                                    "no more than 10000 a second for all APIs",
		"x: {rate: 50/s}\n    concurrency: 5":                                                   "upstreams.api.concurrency: API Gateway has no bound",
	} {
		f, err := APIGateway(parsed(t, with(rest, strings.Split(limit, "; ")...)), GatewayOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || f.Text != nil {
			t.Errorf("%s: %v, want %s", limit, err, want)
		}
	}
	if _, err := APIGateway(parsed(t, with(socket, "x: {rate: 5/s, scope: user}")), GatewayOptions{WebSocket: true}); err == nil || !strings.Contains(err.Error(), "no limits of routes by user") {
		t.Errorf("routes by user: %v", err)
	}
}

// TestChatLevelsAreWritten checks that the preset for API Gateway can be exported, and that omitted limits are
// reported.
func TestChatLevelsAreWritten(t *testing.T) {
	file := parsed(t, "upstreams:\n  chat: {url: https://example.com, preset: chat-levels}\n")
	f, err := APIGateway(file, GatewayOptions{WebSocket: true})
	stage := resource(t, f, err, "Stage", "AWS::ApiGatewayV2::Stage")
	if got := fmt.Sprint(stage["DefaultRouteSettings"], stage["RouteSettings"]); got != "map[ThrottlingBurstLimit:5000 ThrottlingRateLimit:5000] map[$connect:map[ThrottlingBurstLimit:500 ThrottlingRateLimit:500] sendMessage:map[ThrottlingBurstLimit:4000 ThrottlingRateLimit:2000]]" {
		t.Errorf("the stage has %s", got)
	}
	all := strings.Join(f.Warnings, "\n")
	for _, want := range []string{"limits.account: not written: limits.stage is at least as strict", "limits.stage: its burst of 7500 becomes 5000", "limits.month: not written: API Gateway has no quota for all callers"} {
		if !strings.Contains(all, want) {
			t.Errorf("warnings:\n%s\nwant %q", all, want)
		}
	}
	if f, err = APIGateway(file, GatewayOptions{WebSocket: true, AccountBurst: 7500}); err != nil || !strings.Contains(string(f.Text), "ThrottlingBurstLimit: 7500") {
		t.Errorf("with a burst of 7500 for the account: %v\n%s", err, f.Text)
	}
}

// Throttles below a level are checked by their sum.
func TestSumsOfLevels(t *testing.T) {
	for _, c := range []struct {
		limits []string
		rate   float64
		want   string
	}{
		{[]string{"all: 100/s", "a: {rate: 60/s, operations: list}", "b: {rate: 50/s, operations: root}"}, 0, "together have 110 per second and a burst of 110, but the stage has 100 and 100"},
		{[]string{"all: 110/s", "a: {rate: 60/s, operations: list}", "b: {rate: 50/s, operations: root}"}, 0, ""},
		{[]string{"a: {rate: 60/s, operations: list}", "b: {rate: 50/s, operations: root}"}, 100, "but the account has 100 and 5000"},
		{[]string{"a: {rate: 60/s, operations: list}", "b: {rate: 50/s, operations: root}"}, 110, ""},
	} {
		f, err := APIGateway(parsed(t, with(rest, c.limits...)), GatewayOptions{AccountRate: c.rate})
		all := strings.Join(f.Warnings, "\n")
		if err != nil || (c.want == "") == strings.Contains(all, "together") || !strings.Contains(all, c.want) {
			t.Errorf("%v: %v\n%s\nwant %q", c.limits, err, all, c.want)
		}
	}
}
