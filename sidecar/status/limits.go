package status

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/scopes"
)

// A Limit is the state of one limit under one key.
type Limit struct {
	Name      string    `json:"name"`
	Key       string    `json:"key,omitempty"`
	Unit      string    `json:"unit"`
	Shape     string    `json:"shape"`             // bucket, rolling or fixed
	Rule      string    `json:"rule"`              // the configured rule, and the learned rate: "3000/s burst 300", "unknown rate, now 0.9/s, lowered from 1.8/s 14s ago"
	Rate      float64   `json:"rate"`              // in force, per second
	Left      int64     `json:"left"`              // units available now
	Full      int64     `json:"full"`              // units when full
	HeldBack  int64     `json:"held_back"`         // units of a shared burst that only one call can use, after the limit was full for a lease
	ResetMS   int64     `json:"reset_ms"`          // until full; if fixed, until the window ends
	ResetAt   time.Time `json:"reset_at,omitzero"` // the end of the window, in its zone; only if fixed
	PausedMS  int64     `json:"paused_ms"`         // how long a hint still stops all callers
	KeysKnown int       `json:"keys_known"`        // keys of a limit with a scope
	AgeMS     int64     `json:"age_ms,omitempty"`  // of a shared limit: time since the store's last report
	USD       *Dollars  `json:"usd,omitempty"`     // of a limit in dollars, whose units are millionths of a dollar
}

// Dollars is the state of a limit in dollars: Amount is the sum of the others, unless the limit was exceeded.
type Dollars struct {
	Amount float64 `json:"amount"`
	Spent  float64 `json:"spent"`
	Held   float64 `json:"held"` // by calls in flight, whose cost is not known yet
	Left   float64 `json:"left"`
}

// dollarsOf returns the state of a limit in dollars; nil for other limits.
func dollarsOf(l weir.LimitView) *Dollars {
	if !l.Limit.IsBudget() {
		return nil
	}
	v := l.Level
	usd := func(n int64) float64 { return float64(n) / 1e6 }
	return &Dollars{usd(v.Full), usd(v.Full - v.Left - v.Held), usd(v.Held), usd(v.Left)}
}

// limitOf converts a limit's state.
func limitOf(l weir.LimitView) Limit {
	out := Limit{
		Name: l.Limit.Name, Key: l.Key, Unit: l.Limit.UnitName(), Shape: l.Limit.Shape.String(), Rule: l.Limit.At(l.Level),
		Rate: l.Level.PerSecond, Left: l.Level.Left, Full: l.Level.Full, HeldBack: l.Level.HeldBack,
		ResetMS: l.Level.Reset.Milliseconds(), ResetAt: l.Level.ResetAt, PausedMS: l.Level.Paused.Milliseconds(), KeysKnown: l.Keys, USD: dollarsOf(l),
	}
	if l.Level.Age < weir.Never {
		out.AgeMS = l.Level.Age.Milliseconds()
	}
	return out
}

// Of is the response to GET /v1/limits: the remaining units for one user, tenant or other scope.
type Of struct {
	Upstreams []OfUpstream `json:"upstreams"` // upstreams with such limits, by name; callers' limits are an upstream too
}

// OfUpstream contains the remaining units of an upstream's limits.
type OfUpstream struct {
	Name    string  `json:"name"`
	Limits  []Limit `json:"limits"`
	Unknown []Limit `json:"unknown,omitempty"` // shared limits without a report to this process; only name, key and rule are set
}

// withinShown bounds how many keys of limits with further scopes are listed.
const withinShown = 100

// limits serves the remaining units and the resets for the keys in the query: ?user=alice, by any scope of a limit. Of a
// limit with further scopes, it serves the keys with the least remaining.
func (p *Page) limits(w http.ResponseWriter, r *http.Request) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query) == 0 {
		problem(w, http.StatusBadRequest, "no key is given: name one by its scope, such as /v1/limits?user=alice")
		return
	}
	keys := make(map[string]string, len(query))
	for scope, values := range query {
		if keys[scope] = p.name(scope, values[0]); len(values) > 1 {
			problem(w, http.StatusBadRequest, scope+": is given twice")
			return
		}
	}
	of, known := Of{Upstreams: []OfUpstream{}}, make(map[string]bool)
	all := p.Upstreams()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, l := range all[name].Policy().Limits {
			for _, scope := range scopes.Names(l.Scope) {
				known[scope] = true
			}
		}
		if u := ofUpstream(all[name], keys, true); len(u.Limits)+len(u.Unknown) > 0 {
			of.Upstreams = append(of.Upstreams, u)
		}
	}
	for _, scope := range slices.Sorted(maps.Keys(keys)) {
		if !known[scope] {
			problem(w, http.StatusBadRequest, scope+": no limit has this scope; the scopes of limits are "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			return
		}
	}
	answer(w, of)
}

// ofUpstream returns the limits of an upstream under the keys. further includes limits with further scopes.
func ofUpstream(u *weir.Upstream, keys map[string]string, further bool) OfUpstream {
	of := OfUpstream{Name: u.Name(), Limits: []Limit{}}
	for _, v := range u.LookAt(keys) {
		if v.Unknown {
			of.Unknown = append(of.Unknown, Limit{Name: v.Limit.Name, Key: v.Key, Unit: v.Limit.UnitName(), Shape: v.Limit.Shape.String(), Rule: v.Limit.String()})
			continue
		}
		of.Limits = append(of.Limits, limitOf(v))
	}
	if further {
		for _, v := range u.LookWithin(keys, withinShown) {
			of.Limits = append(of.Limits, limitOf(v))
		}
	}
	return of
}
