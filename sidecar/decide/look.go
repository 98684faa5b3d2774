package decide

import (
	"slices"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
)

// A limitView is like a refuse.Level, but always contains the key, even if it is empty.
type limitView struct {
	Limit   string    `json:"limit"`
	Key     string    `json:"key"`
	Unit    string    `json:"unit"`
	Left    int64     `json:"left"`
	Full    int64     `json:"full"`
	ResetMS int64     `json:"reset_ms"`
	ResetAt time.Time `json:"reset_at"`
}

func view(l limit.Limit, key string, at limit.Level, now time.Time) limitView {
	return limitView(refuse.Look(l, key, at, now))
}

// look returns the remaining units of the limits that all callers share. It skips limits with keys.
func look(u *weir.Upstream, now time.Time, wanted func(limit.Limit) bool) []limitView {
	views := []limitView{}
	for _, v := range u.Look(0).Limits {
		if v.Limit.Scope == "" && wanted(v.Limit) {
			views = append(views, view(v.Limit, v.Key, v.Level, now))
		}
	}
	return views
}

// look returns the remaining units of the limits that the call is charged to.
func (a *asker) look(now time.Time) []limitView {
	name := a.about().Operation
	return look(a.u, now, func(l limit.Limit) bool { return l.Counts(name) && charged(l, a.q.Cost) })
}

// charged reports whether a call with this cost is charged to the limit.
func charged(l limit.Limit, cost map[string]int64) bool {
	n, said := cost[l.UnitName()]
	return n > 0 || !said && l.UnitName() == limit.Requests
}

// operation returns the name under which the policy counts an operation.
func operation(p *weir.Policy, name string) string {
	declared := slices.ContainsFunc(p.Operations, func(o weir.Operation) bool { return o.Name == name })
	if declared || slices.ContainsFunc(p.Limits, func(l limit.Limit) bool { return slices.Contains(l.Operations, name) }) {
		return name
	}
	return weir.DefaultOperation
}
