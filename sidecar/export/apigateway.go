package export

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// GatewayOptions say what stands before an API. The zero options have a REST API in an account with the rate and the
// burst that AWS gives new ones.
type GatewayOptions struct {
	Upstream     string // its limits; "" for the only one
	WebSocket    bool
	AccountRate  float64 // a second, over all APIs of the account and region; 0 means 10000
	AccountBurst int64   // 0 means 5000
}

// A throttle is a rate a second and a burst. Both are always written: what has only one of them is taken for 0.
type throttle struct {
	Rate  float64
	Burst int64
}

// A gateway is what the limits of an upstream become.
type gateway struct {
	*ledger
	u     *config.Upstream
	o     GatewayOptions
	scope string              // by which clients are counted, "" for none yet
	plan  map[string]throttle // of each client, by /path/METHOD; "" is the plan's own
	quota *clientQuota
	stage map[string]throttle // of all callers, by the path and the method, or by the route; "" is for all others
	from  map[string]string   // the limit of each throttle, by level and place
}

type clientQuota struct {
	Limit  int64  `yaml:"Limit"`
	Period string `yaml:"Period"`
}

// APIGateway is a template of CloudFormation with the limits of an upstream as API Gateway has them: those with a scope
// as a usage plan, those of all callers as settings of the stage.
func APIGateway(f *config.File, o GatewayOptions) (File, error) {
	g, err := gatewayOf(f, o)
	if err != nil {
		return File{}, err
	}
	return g.written("Limits of "+g.u.Name+" for API Gateway, which holds them as well as it can and no better. Made by weir export apigateway.", g.template())
}

// gatewayOf is what the limits become. What cannot be noted in the ledger is an error.
func gatewayOf(f *config.File, o GatewayOptions) (*gateway, error) {
	l := &ledger{target: "API Gateway", file: f}
	var names []string
	if o.Upstream != "" {
		names = []string{o.Upstream}
	}
	all, err := l.chosen(names)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("the file has %d upstreams: name the one whose limits an API has", len(all))
	}
	o.AccountRate, o.AccountBurst = cmp.Or(o.AccountRate, 10000), cmp.Or(o.AccountBurst, 5000)
	g := &gateway{ledger: l, u: all[0], o: o, plan: map[string]throttle{}, stage: map[string]throttle{}, from: map[string]string{}}
	l.bounds(g.u)
	for i := range g.u.Policy.Limits {
		g.add(&g.u.Policy.Limits[i])
	}
	g.fit()
	g.sums()
	if len(l.errs) == 0 && len(g.plan)+len(g.stage) == 0 && g.quota == nil {
		return nil, fmt.Errorf("%s has no limits to write", g.u.Name)
	}
	return g, nil
}

func (g *gateway) add(one *limit.Limit) {
	field := "limits." + one.Name
	if !g.counts(g.u, one) {
		return
	}
	if one.Scope != "" {
		if g.o.WebSocket {
			g.bad(g.u, field, "settings of routes by "+one.Scope, "leave the scope out, or have weir hold it")
			return
		}
		if g.scope != "" && g.scope != one.Scope {
			g.bad(g.u, field, "second key of a client besides "+g.scope, "")
			return
		}
		g.scope = one.Scope
	}
	if one.Shape == limit.Calendar {
		g.calendar(one)
		return
	}
	to, level := g.stage, "stage"
	if one.Scope != "" {
		to, level = g.plan, "plan"
	}
	place, good := g.place(one)
	if !good {
		return
	}
	t := throttle{one.PerSecond(), one.Full()}
	if have, there := to[place]; there {
		other := g.from[level+place]
		switch {
		case have.within(t):
			g.implied(one.Name, other)
			return
		case t.within(have):
			g.implied(other, one.Name)
		default:
			g.bad(g.u, field, "second throttle for the same calls", "")
			return
		}
	}
	if one.Per != time.Second {
		g.warn(g.u, field, "%v becomes %.6g a second with a burst of %d, which is not the same: API Gateway knows rates a second alone", one.Rate, t.Rate, t.Burst)
	}
	to[place], g.from[level+place] = t, one.Name
}

// within reports whether calls that keep t keep o, too.
func (t throttle) within(o throttle) bool { return t.Rate <= o.Rate && t.Burst <= o.Burst }

// implied warns that a limit is not written, as another of the same calls is at least as strict.
func (g *gateway) implied(name, by string) {
	g.warn(g.u, "limits."+name, "not written: limits.%s is at least as strict for the same calls", by)
}

// fit has no throttle exceed what AWS allows to the account. A burst is lowered, which keeps the limit.
func (g *gateway) fit() {
	for level, of := range map[string]map[string]throttle{"plan": g.plan, "stage": g.stage} {
		for _, place := range slices.Sorted(maps.Keys(of)) {
			t, field := of[place], "limits."+g.from[level+place]
			if t.Rate > g.o.AccountRate {
				g.bad(g.u, field, fmt.Sprintf("more than %g a second for all APIs of the account", g.o.AccountRate), "state with --account-rate and --account-burst what AWS allows to yours")
			} else if t.Burst > g.o.AccountBurst {
				g.warn(g.u, field, "its burst of %d becomes %d, which AWS allows to all APIs of the account; --account-burst states what AWS allows to yours", t.Burst, g.o.AccountBurst)
				t.Burst = g.o.AccountBurst
				of[place] = t
			}
		}
	}
}

// periods are those of quotas.
var periods = map[bucket.Period]string{bucket.Day: "DAY", bucket.Week: "WEEK", bucket.Month: "MONTH"}

func (g *gateway) calendar(one *limit.Limit) {
	field := "limits." + one.Name
	switch {
	case one.Zone != "" && one.Zone != "UTC":
		g.bad(g.u, field, "time zones", "its quotas begin in UTC")
	case periods[one.Every] == "":
		g.bad(g.u, field, "quota by the "+one.Every.String(), "it has them by the day, week and month")
	case one.Scope == "":
		g.warn(g.u, field, "not written: API Gateway has no quota of all callers together, so weir has to keep it")
	case len(one.Operations) > 0:
		g.bad(g.u, field, "quota of some operations", "")
	case one.Amount > math.MaxInt32:
		g.bad(g.u, field, "quota above 2147483647", "")
	case g.quota != nil:
		g.bad(g.u, field, "second quota", "")
	default:
		g.quota = &clientQuota{one.Amount, periods[one.Every]}
	}
}

// ownRoutes are the routes that API Gateway names itself, by the operations that stand for them.
var ownRoutes = map[string]string{weir.DefaultOperation: "$default", "connect": "$connect", "disconnect": "$disconnect"}

// place is where a throttle stands: "" for one that counts every call, else the method or the route of its operation. A
// throttle is of one method, so a limit over several would become as many.
func (g *gateway) place(one *limit.Limit) (at string, good bool) {
	if len(one.Operations) == 0 {
		return "", true
	}
	field := "limits." + one.Name
	if len(one.Operations) > 1 {
		g.bad(g.u, field, "throttle over several operations", "write a limit for each")
		return "", false
	}
	name := one.Operations[0]
	if g.o.WebSocket {
		if route, own := ownRoutes[name]; own {
			return route, true
		}
		return name, true
	}
	i := slices.IndexFunc(g.u.Policy.Operations, func(o weir.Operation) bool { return o.Name == name })
	if i < 0 {
		g.bad(g.u, field, "throttle of what belongs to no operation", "")
		return "", false
	}
	o := g.u.Policy.Operations[i]
	path := strings.TrimPrefix(o.Path, strings.TrimSuffix(g.u.URL.EscapedPath(), "/"))
	if len(o.Methods) != 1 || !strings.HasPrefix(path, "/") {
		g.bad(g.u, field, "throttle but of one path and one method", "write operations."+name+" with both")
		return "", false
	}
	g.warn(g.u, field, "the throttle is of the resource %s alone, and not of what lies below it", path)
	return cmp.Or(strings.TrimRight(path, "/"), "/") + "/" + o.Methods[0], true
}

// sums looks whether what stands below a level is more than that.
func (g *gateway) sums() {
	for _, level := range []struct {
		name string
		of   map[string]throttle
	}{{"the usage plan", g.plan}, {"the stage", g.stage}} {
		var sum throttle
		for place, t := range level.of {
			if place != "" {
				sum.Rate, sum.Burst = sum.Rate+t.Rate, sum.Burst+t.Burst
			}
		}
		most, name := level.of[""], level.name
		if most == (throttle{}) {
			most, name = throttle{g.o.AccountRate, g.o.AccountBurst}, "the account"
		}
		if sum.Rate > most.Rate || sum.Burst > most.Burst {
			g.warnings = append(g.warnings, fmt.Sprintf("%s: its methods and routes have %.6g a second and a burst of %d together, and %s has %.6g and %d",
				level.name, sum.Rate, sum.Burst, name, most.Rate, most.Burst))
		}
	}
}
