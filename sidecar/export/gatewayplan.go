package export

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A planThrottle is one as usage plans have them.
type planThrottle struct {
	Rate  float64 `json:"rateLimit"`
	Burst int64   `json:"burstLimit"`
}

// A planQuota is that of a usage plan.
type planQuota struct {
	Limit  int64  `json:"limit"`
	Period string `json:"period"`
}

func (q *planQuota) String() string {
	return fmt.Sprintf("%d a %s", q.Limit, strings.ToLower(q.Period))
}

// A planStage is a stage whose clients a usage plan is for, with throttles of methods.
type planStage struct {
	API      string                  `json:"apiId"`
	Stage    string                  `json:"stage"`
	Throttle map[string]planThrottle `json:"throttle,omitempty"`
}

// A usagePlan is what the API says of one, as far as it matters here.
type usagePlan struct {
	ID          string            `json:"id,omitempty"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Stages      []planStage       `json:"apiStages"`
	Throttle    *planThrottle     `json:"throttle,omitempty"`
	Quota       *planQuota        `json:"quota,omitempty"`
	Tags        map[string]string `json:"tags"`
}

// mostPages bounds how much is read of usage plans, 500 a page: an account has 300, unless AWS gave it more.
const mostPages = 100

// owned is the usage plan that weir made for the stage, or nil.
func (c *comparison) owned(ctx context.Context) (own *usagePlan, err error) {
	position := ""
	for range mostPages {
		var page struct {
			Item     []usagePlan `json:"item"`
			Position string      `json:"position"`
		}
		path := "/usageplans?limit=500"
		if position != "" {
			path += "&position=" + url.QueryEscape(position)
		}
		if err := c.client.ask(ctx, http.MethodGet, path, nil, &page); err != nil {
			return nil, err
		}
		for i := range page.Item {
			p := &page.Item[i]
			if p.Tags[tagUpstream] != c.g.u.Name || p.Tags[tagStage] != c.at.String() {
				continue
			}
			if own != nil {
				return nil, fmt.Errorf("usage plans %s and %s are both tagged %s=%s and %s=%s: take the tags off one", own.ID, p.ID, tagUpstream, c.g.u.Name, tagStage, c.at)
			}
			own = p
		}
		if position = page.Position; position == "" {
			return own, nil
		}
	}
	return nil, fmt.Errorf("API Gateway tells of usage plans without an end, after %d pages", mostPages)
}

// String is the stage as usage plans name it.
func (s GatewayStage) String() string { return s.API + ":" + s.Stage }

// usagePlan compares the plan that clients of the stage have.
func (c *comparison) usagePlan(ctx context.Context) error {
	own, err := c.owned(ctx)
	switch {
	case err != nil:
		return err
	case own != nil:
		c.replan(own)
	case len(c.g.plan) > 0 || c.g.quota != nil:
		c.newPlan()
	}
	return nil
}

// newPlan makes one.
func (c *comparison) newPlan() {
	at := planStage{API: c.at.API, Stage: c.at.Stage, Throttle: map[string]planThrottle{}}
	p := usagePlan{Name: "weir " + c.g.u.Name + " " + c.at.String(), Description: "The limits of " + c.g.u.Name + " in weir.yaml. Made by weir export apigateway.",
		Tags: map[string]string{tagUpstream: c.g.u.Name, tagStage: c.at.String()}}
	c.tell("usage plan", "", fmt.Sprintf("made, as %q", p.Name))
	for _, place := range slices.Sorted(maps.Keys(c.g.plan)) {
		t := planThrottle(c.g.plan[place])
		if place == "" {
			p.Throttle = &t
			c.tell("usage plan, each client", "", c.g.plan[place].String())
		} else {
			at.Throttle[place] = t
			c.tell("usage plan, each client, "+place, "", c.g.plan[place].String())
		}
	}
	if q := c.g.quota; q != nil {
		p.Quota = &planQuota{q.Limit, q.Period}
		c.tell("usage plan, quota of each client", "", p.Quota.String())
	}
	p.Stages = []planStage{at}
	c.asks = append(c.asks, gatewayAsk{http.MethodPost, "/usageplans", p})
}

// replan changes one into that of the file. As weir made it, what the file does not have is taken off.
func (c *comparison) replan(own *usagePlan) {
	name, groups := "usage plan "+own.ID, [][]patch(nil)
	i := slices.IndexFunc(own.Stages, func(s planStage) bool { return s.API == c.at.API && s.Stage == c.at.Stage })
	methods := map[string]planThrottle{}
	if i < 0 {
		c.tell(name, "", "for "+c.at.String())
		groups = append(groups, []patch{{"add", "/apiStages", c.at.String()}})
	} else {
		for key, t := range own.Stages[i].Throttle {
			methods[placeOf(key)] = t
		}
	}
	stage := "/apiStages/" + c.at.String() + "/throttle/"
	for _, place := range slices.Sorted(maps.Keys(union(c.g.plan, methods))) {
		if place == "" {
			continue
		}
		want, wanted := c.g.plan[place]
		there, has := methods[place]
		switch {
		case !wanted:
			c.tell(name+", each client, "+place, throttle(there).String(), "none")
			groups = append(groups, []patch{{"remove", stage + keyOf(place), ""}})
		case !has || !want.same(throttle(there)):
			c.tell(name+", each client, "+place, before(has, throttle(there)), want.String())
			groups = append(groups, want.both("replace", stage+keyOf(place)+"/rateLimit", stage+keyOf(place)+"/burstLimit"))
		}
	}
	groups = append(groups, c.ofClient(own, name), c.quotaOf(own, name))
	c.patch("/usageplans/"+url.PathEscape(own.ID), groups)
}

func union(a map[string]throttle, b map[string]planThrottle) map[string]bool {
	all := map[string]bool{}
	for name := range a {
		all[name] = true
	}
	for name := range b {
		all[name] = true
	}
	return all
}

func before(there bool, t throttle) string {
	if !there {
		return ""
	}
	return t.String()
}

// change is the operation by which something comes to be that is there already, or is not.
func change(there bool) string {
	if there {
		return "replace"
	}
	return "add"
}

// ofClient compares what each client has of all methods.
func (c *comparison) ofClient(own *usagePlan, name string) []patch {
	want, wanted := c.g.plan[""]
	var there throttle
	if own.Throttle != nil {
		there = throttle(*own.Throttle)
	}
	has := own.Throttle != nil
	switch {
	case !wanted && has:
		c.tell(name+", each client", there.String(), "none")
		return []patch{{"remove", "/throttle", ""}}
	case wanted && !(has && want.same(there)):
		c.tell(name+", each client", before(has, there), want.String())
		return want.both(change(has), "/throttle/rateLimit", "/throttle/burstLimit")
	}
	return nil
}

// quotaOf compares the quota of each client.
func (c *comparison) quotaOf(own *usagePlan, name string) []patch {
	name += ", quota of each client"
	was := ""
	if own.Quota != nil {
		was = own.Quota.String()
	}
	if c.g.quota == nil {
		if own.Quota == nil {
			return nil
		}
		c.tell(name, was, "none")
		return []patch{{"remove", "/quota", ""}}
	}
	want := planQuota{c.g.quota.Limit, c.g.quota.Period}
	if own.Quota != nil && *own.Quota == want {
		return nil
	}
	c.tell(name, was, want.String())
	op := change(own.Quota != nil)
	return []patch{{op, "/quota/limit", strconv.FormatInt(want.Limit, 10)}, {op, "/quota/period", want.Period}}
}
