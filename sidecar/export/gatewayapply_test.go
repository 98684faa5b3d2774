package export

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

var prod = GatewayStage{API: "abc", Stage: "prod"}

// applied compares and applies. It wants that nothing is left to change then, and returns what was said before.
func applied(t *testing.T, a *GatewayAPI, f *fakeGateway, text string, o GatewayOptions) string {
	t.Helper()
	changed := f.changes
	c, err := a.Compare(t.Context(), parsed(t, text), o, prod)
	if err != nil {
		t.Fatal(err)
	}
	if f.changes != changed {
		t.Fatal("a comparison changed something")
	}
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	changed = f.changes
	again, err := a.Compare(t.Context(), parsed(t, text), o, prod)
	if err == nil {
		err = again.Apply(t.Context())
	}
	if err != nil || len(again.Lines) > 0 || f.changes != changed {
		t.Errorf("a second time: %v, %q", err, again.Lines)
	}
	return strings.Join(append(c.Lines, c.Left...), "\n")
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var restLimits = with(rest, "all: {rate: 3000/s, burst: 300}", "tenant: {rate: 100/min, burst: 10, scope: tenant}",
	"tlist: {rate: 1/s, scope: tenant, operations: list}", "list: {rate: 200/s, operations: list}", "root: {rate: 20/s, operations: root}", "week: {amount: 25, every: week, scope: tenant}")

func TestApplyToRESTAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeGateway{tags: map[string]string{"weir": "api"}, methods: map[string]map[string]any{
			"v1/list/GET": {"loggingLevel": "INFO", "throttlingRateLimit": 10000.0, "throttlingBurstLimit": 5000.0}, // as older ones are written
			"~1b/PUT":     {"throttlingRateLimit": 7.0, "throttlingBurstLimit": 7.0},
		}, plans: []*usagePlan{{ID: "p1", Name: "gold", Throttle: &planThrottle{1, 1}}}}
		a := gatewayAt(t, f)
		said := applied(t, a, f, restLimits, GatewayOptions{})
		for _, want := range []string{
			"stage prod, all methods: 3000 a second, burst 300\n",
			"stage prod, //GET: 20 a second, burst 20\n",
			"stage prod, /v1/list/GET: 10000 a second, burst 5000 -> 200 a second, burst 200\n",
			`usage plan: made, as "weir api abc:prod"`,
			"usage plan, each client: 1.66667 a second, burst 10\n",
			"usage plan, each client, /v1/list/GET: 1 a second, burst 1\n",
			"usage plan, quota of each client: 25 a week\n",
			"stage prod, /b/PUT: 7 a second, burst 7",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("it does not say %q:\n%s", want, said)
			}
		}
		if got, want := encoded(t, f.methods), `{"*/*":{"throttlingBurstLimit":300,"throttlingRateLimit":3000},"v1/list/GET":{"loggingLevel":"INFO","throttlingBurstLimit":200,"throttlingRateLimit":200},"~1/GET":{"throttlingBurstLimit":20,"throttlingRateLimit":20},"~1b/PUT":{"throttlingBurstLimit":7,"throttlingRateLimit":7}}`; got != want {
			t.Errorf("the stage has %s, want %s", got, want)
		}
		if got, want := encoded(t, f.plans), `[{"id":"p1","name":"gold","apiStages":null,"throttle":{"rateLimit":1,"burstLimit":1},"tags":null},`+
			`{"id":"p2","name":"weir api abc:prod","description":"The limits of api in weir.yaml. Made by weir export apigateway.","apiStages":[{"apiId":"abc","stage":"prod","throttle":{"/v1/list/GET":{"rateLimit":1,"burstLimit":1}}}],`+
			`"throttle":{"rateLimit":1.6666666666666667,"burstLimit":10},"quota":{"limit":25,"period":"WEEK"},"tags":{"weir":"api","weir:stage":"abc:prod"}}]`; got != want {
			t.Errorf("the plans are %s, want %s", got, want)
		}
		// What the file does not have any more is taken off the plan that weir made, and stays at the stage.
		said = applied(t, a, f, with(rest, "troot: {rate: 2/s, scope: tenant, operations: root}", "all: {rate: 3000/s, burst: 300}"), GatewayOptions{})
		if want := "usage plan p2, each client, //GET: 2 a second, burst 2\nusage plan p2, each client, /v1/list/GET: 1 a second, burst 1 -> none\n" +
			"usage plan p2, each client: 1.66667 a second, burst 10 -> none\nusage plan p2, quota of each client: 25 a week -> none\n"; !strings.HasPrefix(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
		if got, want := encoded(t, f.plans[1].Stages), `[{"apiId":"abc","stage":"prod","throttle":{"//GET":{"rateLimit":2,"burstLimit":2}}}]`; got != want || f.plans[1].Throttle != nil || f.plans[1].Quota != nil {
			t.Errorf("the plan has %s, want %s", encoded(t, f.plans[1]), want)
		}
		// A stage that somebody took off comes back, and what was taken away is added.
		f.plans[1].Stages = nil
		applied(t, a, f, restLimits, GatewayOptions{})
		if got := encoded(t, f.plans[1]); !strings.Contains(got, `{"/v1/list/GET":{"rateLimit":1,"burstLimit":1}}`) || !strings.Contains(got, `"quota":{"limit":25,"period":"WEEK"}`) || !strings.Contains(got, `"rateLimit":1.6666666666666667`) {
			t.Errorf("the plan has %s", got)
		}
	})
}

// A request takes so many operations, and those of a throttle go together.
func TestApplyManyMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeGateway{tags: map[string]string{"weir": "api"}, methods: map[string]map[string]any{}}
		text := "upstreams:\n  api:\n    url: https://example.com\n    operations:\n"
		limits := "    limits:\n"
		for i := range 101 {
			text += fmt.Sprintf("      o%d: {methods: [GET], path: /o%d}\n", i, i)
			limits += fmt.Sprintf("      l%d: {rate: %d/s, operations: o%d}\n", i, i+1, i)
		}
		applied(t, gatewayAt(t, f), f, text+limits, GatewayOptions{})
		if len(f.methods) != 101 || f.changes != 6 {
			t.Errorf("%d methods by %d requests, want 101 by 6", len(f.methods), f.changes)
		}
	})
}

func TestApplyToWebSocketAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeGateway{tags: map[string]string{"weir": "chat"}, routes: map[string]map[string]any{
			"sendMessage": {"loggingLevel": "INFO", "throttlingRateLimit": 20.0, "throttlingBurstLimit": 19.0}, "other": {"throttlingRateLimit": 3.0, "throttlingBurstLimit": 4.0},
		}}
		said := applied(t, gatewayAt(t, f), f, with(socket, "all: 500/s", "c: {rate: 5/s, operations: connect}", "s: {rate: 20/s, operations: sendMessage}"), GatewayOptions{WebSocket: true})
		if want := "stage prod, all routes: 500 a second, burst 500\nstage prod, $connect: 5 a second, burst 5\nstage prod, sendMessage: 20 a second, burst 19 -> 20 a second, burst 20\nstage prod, route other: 3 a second, burst 4"; said != want {
			t.Errorf("it says %q, want %q", said, want)
		}
		if got, want := encoded(t, []any{f.all, f.routes}), `[{"throttlingBurstLimit":500,"throttlingRateLimit":500},{"$connect":{"throttlingBurstLimit":5,"throttlingRateLimit":5},"other":{"throttlingBurstLimit":4,"throttlingRateLimit":3},"sendMessage":{"loggingLevel":"INFO","throttlingBurstLimit":20,"throttlingRateLimit":20}}]`; got != want {
			t.Errorf("the stage has %s, want %s", got, want)
		}
	})
}

// What is not weir's is not touched, and what cannot be done is said with what to do.
func TestApplyRefuses(t *testing.T) {
	mine := map[string]string{"weir": "api", "weir:stage": "abc:prod"}
	for _, c := range []struct {
		f          fakeGateway
		text, want string
		o          GatewayOptions
	}{
		{fakeGateway{tags: map[string]string{"weir": "other"}}, with(rest, "all: 5/s"), "stage prod of API abc has no tag weir=api, so it is not changed; if weir shall have its throttles: aws apigateway tag-resource --resource-arn arn:aws:apigateway:eu-west-1::/restapis/abc/stages/prod --tags weir=api", GatewayOptions{}},
		{fakeGateway{}, with(socket, "all: 5/s"), "aws apigatewayv2 tag-resource --resource-arn arn:aws:apigateway:eu-west-1::/apis/abc/stages/prod --tags weir=chat", GatewayOptions{WebSocket: true}},
		{fakeGateway{plans: []*usagePlan{{ID: "p1", Tags: mine}, {ID: "p2", Tags: mine}}}, with(rest, "x: {rate: 5/s, scope: tenant}"), "usage plans p1 and p2 are both tagged weir=api and weir:stage=abc:prod", GatewayOptions{}},
		{fakeGateway{}, with(rest, "x: {rate: 5/min, shape: rolling}"), "API Gateway has no rolling windows", GatewayOptions{}},
		{fakeGateway{}, "upstreams: {api: {url: https://example.com}}", "api has no limits to write", GatewayOptions{}},
		{fakeGateway{broken: "/usageplans"}, with(rest, "x: {rate: 5/s, scope: tenant}"), "request 1 of 1, POST /usageplans: API Gateway answers with BadRequestException: broken", GatewayOptions{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := gatewayAt(t, &c.f)
			changes, err := a.Compare(t.Context(), parsed(t, c.text), c.o, prod)
			if err == nil {
				err = changes.Apply(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || c.f.changes != 0 {
				t.Errorf("%v after %d changes, want %s", err, c.f.changes, c.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a := gatewayAt(t, &fakeGateway{})
		if _, err := a.Compare(t.Context(), parsed(t, with(rest, "all: 5/s")), GatewayOptions{}, GatewayStage{API: "abc", Stage: "dev"}); err == nil || !strings.Contains(err.Error(), "NotFoundException: Invalid stage identifier specified") {
			t.Errorf("a stage that is not there: %v", err)
		}
		if _, err := (&GatewayAPI{}).Compare(t.Context(), parsed(t, with(rest, "all: 5/s")), GatewayOptions{}, prod); err == nil || !strings.Contains(err.Error(), "want a region and credentials") {
			t.Errorf("no region: %v", err)
		}
	})
}
