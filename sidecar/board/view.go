package board

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// mostRows is how many upstreams a page shows: those that matter most. The filter finds the rest.
const mostRows = 100

// mostPlots is how many of them have a plot, so that the page stays small.
const mostPlots = 40

// A view is what a page shows.
type view struct {
	status.Report
	Up     time.Duration
	Filter string
	Rows   []row
	Hidden int // upstreams that match the filter, and have no row
	Open   int // upstreams with a breaker that is not closed
	Paused int // and with a pause
	sums
}

// sums are figures a second, of the latest step.
type sums struct {
	Allowed, Waited, Refused, Throttled float64
}

// A row is an upstream.
type row struct {
	status.Upstream
	State string // a word for people, and the class of its colour: ok, refuses, waits, paused, half-open, open or trouble
	sums
	Why      weir.Reason // of most refusals
	P50, P99 time.Duration
	Plot     markup
	Waiting  int   // for a slot
	Least    int64 // what is left of the scarcest limit, in percent; -1 if it has none
}

// look is the view of now.
func (b *Board) look(ctx context.Context, filter string) *view {
	v := &view{Report: b.Page.Report(ctx), Filter: filter}
	v.Up = time.Since(v.Started).Round(time.Second)
	troubled := make(map[string]bool)
	for _, t := range v.Troubles {
		troubled[t.Upstream] = true
	}
	for i := range v.Upstreams {
		r := b.row(&v.Upstreams[i])
		if troubled[r.Name] {
			r.State = "trouble"
		}
		v.count(&r)
		if strings.Contains(strings.ToLower(r.Name), strings.ToLower(filter)) || r.State == filter {
			v.Rows = append(v.Rows, r)
		}
	}
	slices.SortStableFunc(v.Rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(severity(b.State), severity(a.State)), cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Allowed, a.Allowed))
	})
	v.Hidden = max(0, len(v.Rows)-mostRows)
	v.Rows = v.Rows[:len(v.Rows)-v.Hidden]
	for i := range min(len(v.Rows), mostPlots) {
		all, _ := b.histories.look(v.Rows[i].Name)
		v.Rows[i].Plot = plot(all)
	}
	return v
}

// count adds a row to what the page says of all.
func (v *view) count(r *row) {
	v.Allowed, v.Waited, v.Refused, v.Throttled = v.Allowed+r.Allowed, v.Waited+r.Waited, v.Refused+r.Refused, v.Throttled+r.Throttled
	if r.State == "open" || r.State == "half-open" {
		v.Open++
	}
	if len(r.Pauses) > 0 {
		v.Paused++
	}
}

// states are the words for how an upstream is, the worst last.
var states = []string{"ok", "waits", "refuses", "paused", "half-open", "open", "trouble"}

func severity(state string) int { return slices.Index(states, state) }

// row is all of a row but its plot.
func (b *Board) row(u *status.Upstream) row {
	r := row{Upstream: *u, State: "ok", Least: -1}
	all, why := b.histories.look(u.Name)
	if all != nil {
		last, second := &all[len(all)-1], step.Seconds()
		r.sums = sums{float64(last.allowed) / second, float64(last.waited) / second, float64(last.refused) / second, float64(last.throttled) / second}
		r.P50, r.P99, r.Why = last.p50, last.p99, why
	}
	for _, l := range u.Limits {
		if l.KeysKnown == 0 && l.Full > 0 {
			if left := 100 * max(0, l.Left) / l.Full; r.Least < 0 || left < r.Least {
				r.Least = left
			}
		}
	}
	for _, f := range u.Flights {
		r.Waiting += f.Waiting
	}
	worst := func(state string) {
		if severity(state) > severity(r.State) {
			r.State = state
		}
	}
	if r.Waited > 0 || r.Waiting > 0 {
		worst("waits")
	}
	if r.Refused > 0 {
		worst("refuses")
	}
	if len(u.Pauses) > 0 {
		worst("paused")
	}
	for _, k := range u.Breakers {
		if k.State != "closed" {
			worst(k.State)
		}
	}
	return r
}
