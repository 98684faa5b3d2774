package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

// A fakeGateway answers as API Gateway's control plane does, of what weir asks: with the members that the SDK's serializers
// have (service/apigateway v1.40.2, apigatewayv2 v1.35.2), usage plans one a page, and a refusal for rate of each second
// change.
type fakeGateway struct {
	t       *testing.T
	v       sigtest.Verifier
	tags    map[string]string
	methods map[string]map[string]any // settings of the stage of a REST API
	all     map[string]any            // those of the stage of a WebSocket API
	routes  map[string]map[string]any
	plans   []*usagePlan
	changes int // that were made
	refused bool
	broken  string // a path whose changes fail
}

// gatewayAt is the API of a fake in the bubble.
func gatewayAt(t *testing.T, f *fakeGateway) *GatewayAPI {
	t.Helper()
	net := memnet.New()
	t.Cleanup(net.Close)
	f.t, f.v = t, sigtest.Verifier{Secrets: map[string]string{"AKID": "secret"}}
	return &GatewayAPI{AWS: aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")},
		URL: net.Serve("apigateway.eu-west-1.amazonaws.com", f), Transport: net.Transport()}
}

func (f *fakeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	signed, err := f.v.Verify(r)
	if err != nil || signed.Service != "apigateway" || signed.Region != "eu-west-1" || r.Header.Get("Accept") != "application/json" {
		f.fail(w, http.StatusForbidden, "InvalidSignatureException", fmt.Sprint(err))
		return
	}
	if r.Method != http.MethodGet {
		if f.refused = !f.refused; f.refused {
			f.fail(w, http.StatusTooManyRequests, "TooManyRequestsException", "Too Many Requests")
			return
		}
		if f.broken != "" && strings.HasPrefix(r.URL.Path, f.broken) {
			f.fail(w, http.StatusBadRequest, "BadRequestException", "broken")
			return
		}
		f.changes++
	}
	switch {
	case r.URL.Path == "/restapis/abc/stages/prod":
		if f.patched(w, r, signed.Body, f.stagePatch) {
			f.say(w, map[string]any{"stageName": "prod", "tags": f.tags, "methodSettings": f.methods})
		}
	case r.URL.Path == "/v2/apis/abc/stages/prod":
		f.webSocket(w, r, signed.Body)
	case r.URL.Path == "/usageplans" && r.Method == http.MethodPost:
		p := &usagePlan{ID: fmt.Sprint("p", len(f.plans)+1)}
		if err := json.Unmarshal(signed.Body, p); err != nil {
			f.fail(w, http.StatusBadRequest, "BadRequestException", err.Error())
			return
		}
		f.plans = append(f.plans, p)
		w.WriteHeader(http.StatusCreated)
		f.say(w, p)
	case r.URL.Path == "/usageplans":
		at, _ := strconv.Atoi(r.URL.Query().Get("position"))
		page := map[string]any{"item": f.plans[at:min(at+1, len(f.plans))]}
		if at+1 < len(f.plans) {
			page["position"] = fmt.Sprint(at + 1)
		}
		f.say(w, page)
	case strings.HasPrefix(r.URL.Path, "/usageplans/p"):
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/usageplans/p"))
		p := f.plans[n-1]
		if f.patched(w, r, signed.Body, func(o patch) string { return planPatch(p, o) }) {
			f.say(w, p)
		}
	default:
		f.fail(w, http.StatusNotFound, "NotFoundException", "Invalid stage identifier specified")
	}
}

func (f *fakeGateway) fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Amzn-Errortype", code)
	w.WriteHeader(status)
	f.say(w, map[string]any{"message": message})
}

func (f *fakeGateway) say(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		f.t.Error(err)
	}
}

// patched makes the operations of a request, or says which cannot be made.
func (f *fakeGateway) patched(w http.ResponseWriter, r *http.Request, body []byte, one func(patch) string) bool {
	if r.Method == http.MethodGet {
		return true
	}
	var in struct {
		PatchOperations []patch `json:"patchOperations"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	wrong := ""
	if err := d.Decode(&in); err != nil || len(in.PatchOperations) == 0 || len(in.PatchOperations) > 80 {
		wrong = fmt.Sprintf("%d operations: %v", len(in.PatchOperations), err)
	}
	for _, o := range in.PatchOperations {
		if wrong == "" {
			wrong = one(o)
		}
	}
	for place, m := range f.methods {
		if rate, _ := m["throttlingRateLimit"].(float64); rate == 0 || m["throttlingBurstLimit"] == nil {
			f.t.Errorf("%s has %v, so that it refuses every request", place, m)
		}
	}
	if wrong != "" {
		f.fail(w, http.StatusBadRequest, "BadRequestException", wrong)
	}
	return wrong == ""
}

var stagePath = regexp.MustCompile(`^/(.+/[^/]+)/throttling/(rateLimit|burstLimit)$`)

func (f *fakeGateway) stagePatch(o patch) string {
	m := stagePath.FindStringSubmatch(o.Path)
	v, err := strconv.ParseFloat(o.Value, 64)
	if m == nil || o.Op != "replace" || err != nil {
		return "Invalid patch path " + o.Path
	}
	if f.methods[m[1]] == nil {
		f.methods[m[1]] = map[string]any{}
	}
	f.methods[m[1]]["throttling"+strings.ToUpper(m[2][:1])+m[2][1:]] = v
	return ""
}

var planPath = regexp.MustCompile(`^/apiStages/abc:prod/throttle/([^/]+)/([^/]+)(/rateLimit|/burstLimit)?$`)

func planPatch(p *usagePlan, o patch) string {
	v, _ := strconv.ParseFloat(o.Value, 64)
	if o.Path == "/apiStages" && o.Op == "add" && o.Value == "abc:prod" {
		p.Stages = append(p.Stages, planStage{API: "abc", Stage: "prod"})
		return ""
	}
	if m := planPath.FindStringSubmatch(o.Path); m != nil {
		return methodPatch(p, o, strings.ReplaceAll(m[1], "~1", "/")+"/"+m[2], m[3], v)
	}
	if o.Op == "replace" && (strings.HasPrefix(o.Path, "/throttle/") && p.Throttle == nil || strings.HasPrefix(o.Path, "/quota/") && p.Quota == nil) {
		return "there is no " + o.Path
	}
	if strings.HasPrefix(o.Path, "/throttle/") && p.Throttle == nil {
		p.Throttle = &planThrottle{}
	}
	if strings.HasPrefix(o.Path, "/quota/") && p.Quota == nil {
		p.Quota = &planQuota{}
	}
	switch o.Op + " " + strings.Replace(o.Path, "/", "", 1) {
	case "add throttle/rateLimit", "replace throttle/rateLimit":
		p.Throttle.Rate = v
	case "add throttle/burstLimit", "replace throttle/burstLimit":
		p.Throttle.Burst = int64(v)
	case "add quota/limit", "replace quota/limit":
		p.Quota.Limit = int64(v)
	case "add quota/period", "replace quota/period":
		p.Quota.Period = o.Value
	case "remove throttle":
		p.Throttle = nil
	case "remove quota":
		p.Quota = nil
	default:
		return "Invalid patch path " + o.Op + " " + o.Path
	}
	return ""
}

// methodPatch changes the throttle of a method in a plan.
func methodPatch(p *usagePlan, o patch, key, field string, v float64) string {
	if len(p.Stages) == 0 {
		return "the plan has no stage"
	}
	all := p.Stages[0].Throttle
	if all == nil {
		all = map[string]planThrottle{}
		p.Stages[0].Throttle = all
	}
	t := all[key]
	switch {
	case o.Op == "remove" && field == "":
		delete(all, key)
		return ""
	case o.Op != "replace" || field == "":
		return "Invalid patch path " + o.Path
	case field == "/rateLimit":
		t.Rate = v
	default:
		t.Burst = int64(v)
	}
	all[key] = t
	return ""
}

// webSocket takes each block as it is sent: what it leaves out is 0.
func (f *fakeGateway) webSocket(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Method == http.MethodPatch {
		var in struct {
			DefaultRouteSettings map[string]any            `json:"defaultRouteSettings"`
			RouteSettings        map[string]map[string]any `json:"routeSettings"`
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			f.fail(w, http.StatusBadRequest, "BadRequestException", err.Error())
			return
		}
		if in.DefaultRouteSettings != nil {
			f.all = in.DefaultRouteSettings
		}
		if in.RouteSettings != nil {
			f.routes = in.RouteSettings
		}
	}
	f.say(w, map[string]any{"stageName": "prod", "tags": f.tags, "defaultRouteSettings": f.all, "routeSettings": f.routes})
}
