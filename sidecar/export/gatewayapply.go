package export

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/sidecar/config"
)

// A GatewayStage is where the limits of an upstream are put.
type GatewayStage struct{ API, Stage string }

// GatewayChanges are what API Gateway lacks of the limits of a file.
type GatewayChanges struct {
	Lines    []string // what would be changed, for people; none if all is there
	Left     []string // throttles of the stage that no limit of the file is for, and that stay
	Warnings []string

	asks   []gatewayAsk
	client *gatewayClient
}

// A gatewayAsk is a request that changes something.
type gatewayAsk struct {
	method, path string
	body         any
}

// Tags of what weir may change: the upstream whose limits it has, and for a usage plan the stage, as it has clients of one.
const (
	tagUpstream = "weir"
	tagStage    = "weir:stage"
)

// Compare reads what there is, and says what of it Apply would change. A stage that does not carry the tag weir with the
// name of the upstream is not changed: that is an error which says how it gets it. A usage plan is made if there is none.
func (a *GatewayAPI) Compare(ctx context.Context, f *config.File, o GatewayOptions, at GatewayStage) (GatewayChanges, error) {
	g, err := gatewayOf(f, o)
	if err == nil {
		err = g.err()
	}
	if err != nil {
		return GatewayChanges{}, err
	}
	client, err := a.client()
	if err != nil {
		return GatewayChanges{}, err
	}
	c := comparison{g: g, at: at, GatewayChanges: GatewayChanges{Warnings: g.warnings, client: client}}
	if g.o.WebSocket {
		return c.GatewayChanges, c.routes(ctx)
	}
	if err := c.methods(ctx); err != nil {
		return c.GatewayChanges, err
	}
	err = c.usagePlan(ctx)
	return c.GatewayChanges, err
}

// Apply makes the changes, one request after the other. What was done before an error stays; a new Compare says what is
// left.
func (c *GatewayChanges) Apply(ctx context.Context) error {
	for i, a := range c.asks {
		if err := c.client.ask(ctx, a.method, a.path, a.body, nil); err != nil {
			return fmt.Errorf("request %d of %d, %s %s: %w", i+1, len(c.asks), a.method, a.path, err)
		}
	}
	return nil
}

type comparison struct {
	GatewayChanges
	g  *gateway
	at GatewayStage
}

func (t throttle) String() string { return fmt.Sprintf("%.6g a second, burst %d", t.Rate, t.Burst) }

// same bears what becomes of a rate on its way through JSON.
func (t throttle) same(other throttle) bool {
	return t.Burst == other.Burst && math.Abs(t.Rate-other.Rate) <= 1e-9*math.Max(t.Rate, other.Rate)
}

// tell adds a line on what changes. was is "" for what is new.
func (c *comparison) tell(what, was, is string) {
	if was != "" {
		is = was + " -> " + is
	}
	c.Lines = append(c.Lines, what+": "+is)
}

// tagged complains of a stage that is not weir's to change.
func (c *comparison) tagged(tags map[string]string, kind, service string) error {
	if tags[tagUpstream] == c.g.u.Name {
		return nil
	}
	partition := "aws"
	if strings.HasPrefix(c.client.region, "cn-") {
		partition = "aws-cn"
	}
	return fmt.Errorf("stage %s of API %s has no tag %s=%s, so it is not changed; if weir shall have its throttles: aws %s tag-resource --resource-arn arn:%s:apigateway:%s::/%s/%s/stages/%s --tags %s=%s",
		c.at.Stage, c.at.API, tagUpstream, c.g.u.Name, service, partition, c.client.region, kind, c.at.API, c.at.Stage, tagUpstream, c.g.u.Name)
}

// A patch is an operation on what there is.
type patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

// both are the two operations that make a throttle, which never go apart.
func (t throttle) both(op, rate, burst string) []patch {
	return []patch{{op, rate, strconv.FormatFloat(t.Rate, 'f', -1, 64)}, {op, burst, strconv.FormatInt(t.Burst, 10)}}
}

// mostPatches is how many operations go in one request: API Gateway refuses many more.
const mostPatches = 40

// patch adds requests with the operations. Those of a group go together.
func (c *comparison) patch(path string, groups [][]patch) {
	var all []patch
	flush := func() {
		if len(all) > 0 {
			c.asks = append(c.asks, gatewayAsk{http.MethodPatch, path, map[string]any{"patchOperations": all}})
		}
		all = nil
	}
	for _, group := range groups {
		if len(all)+len(group) > mostPatches {
			flush()
		}
		all = append(all, group...)
	}
	flush()
}

// methods compares the settings of a stage of a REST API.
func (c *comparison) methods(ctx context.Context) error {
	if len(c.g.stage) == 0 {
		return nil
	}
	var is struct {
		Tags           map[string]string `json:"tags"`
		MethodSettings map[string]struct {
			Rate  float64 `json:"throttlingRateLimit"`
			Burst int64   `json:"throttlingBurstLimit"`
		} `json:"methodSettings"`
	}
	path := "/restapis/" + url.PathEscape(c.at.API) + "/stages/" + url.PathEscape(c.at.Stage)
	if err := c.client.ask(ctx, http.MethodGet, path, nil, &is); err != nil {
		return err
	}
	if err := c.tagged(is.Tags, "restapis", "apigateway"); err != nil {
		return err
	}
	keys, have := map[string]string{}, map[string]throttle{}
	for _, key := range slices.Sorted(maps.Keys(is.MethodSettings)) {
		place, m := placeOf(key), is.MethodSettings[key]
		keys[place], have[place] = key, throttle{m.Rate, m.Burst}
		if _, wanted := c.g.stage[place]; !wanted {
			c.Left = append(c.Left, fmt.Sprintf("stage %s, %s: %v", c.at.Stage, cmp.Or(place, "all methods"), have[place]))
		}
	}
	var groups [][]patch
	for _, place := range slices.Sorted(maps.Keys(c.g.stage)) {
		want, was := c.g.stage[place], ""
		if there, ok := have[place]; ok {
			if want.same(there) {
				continue
			}
			was = there.String()
		}
		c.tell(fmt.Sprintf("stage %s, %s", c.at.Stage, cmp.Or(place, "all methods")), was, want.String())
		at := "/" + cmp.Or(keys[place], keyOf(place)) + "/throttling/"
		groups = append(groups, want.both("replace", at+"rateLimit", at+"burstLimit"))
	}
	c.patch(path, groups)
	return nil
}

// placeOf is where a setting of a stage belongs: "" for all methods, else /path/METHOD. Slashes of a path are written ~1,
// but for the first, which may be missing.
func placeOf(key string) string {
	at := strings.LastIndexByte(key, '/')
	if at < 0 || key == "*/*" {
		return ""
	}
	return "/" + strings.TrimLeft(strings.ReplaceAll(key[:at], "~1", "/"), "/") + key[at:]
}

// keyOf is the setting of a place, in a stage and in a usage plan.
func keyOf(place string) string {
	at := strings.LastIndexByte(place, '/')
	if at < 0 {
		return "*/*"
	}
	return strings.ReplaceAll(place[:at], "/", "~1") + place[at:]
}

// routes compares the settings of a stage of a WebSocket API. All of a route's settings are sent, with those that are
// none of weir's: what is left out of a block may be taken for 0.
func (c *comparison) routes(ctx context.Context) error {
	var is struct {
		Tags    map[string]string         `json:"tags"`
		Default map[string]any            `json:"defaultRouteSettings"`
		Routes  map[string]map[string]any `json:"routeSettings"`
	}
	path := "/v2/apis/" + url.PathEscape(c.at.API) + "/stages/" + url.PathEscape(c.at.Stage)
	if err := c.client.ask(ctx, http.MethodGet, path, nil, &is); err != nil {
		return err
	}
	if err := c.tagged(is.Tags, "apis", "apigatewayv2"); err != nil {
		return err
	}
	body, routes := map[string]any{}, map[string]map[string]any{}
	maps.Copy(routes, is.Routes)
	for _, name := range slices.Sorted(maps.Keys(is.Routes)) {
		if _, wanted := c.g.stage[name]; !wanted {
			c.Left = append(c.Left, fmt.Sprintf("stage %s, route %s: %v", c.at.Stage, name, throttleOf(is.Routes[name])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.g.stage)) {
		want, there, was := c.g.stage[name], is.Routes[name], ""
		if name == "" {
			there = is.Default
		}
		if there != nil {
			if want.same(throttleOf(there)) {
				continue
			}
			was = throttleOf(there).String()
		}
		c.tell(fmt.Sprintf("stage %s, %s", c.at.Stage, cmp.Or(name, "all routes")), was, want.String())
		next := map[string]any{}
		maps.Copy(next, there)
		next["throttlingRateLimit"], next["throttlingBurstLimit"] = want.Rate, want.Burst
		if name == "" {
			body["defaultRouteSettings"] = next
		} else {
			routes[name], body["routeSettings"] = next, routes
		}
	}
	if len(body) > 0 {
		c.asks = append(c.asks, gatewayAsk{http.MethodPatch, path, body})
	}
	return nil
}

func throttleOf(settings map[string]any) throttle {
	rate, _ := settings["throttlingRateLimit"].(float64)
	burst, _ := settings["throttlingBurstLimit"].(float64)
	return throttle{rate, int64(burst)}
}
