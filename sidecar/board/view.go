package board

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// mostRows is how many upstreams a page shows, the worst first. The filter finds the others.
const mostRows = 100

const (
	runsShown  = 20 // runs that a page shows, those with the latest calls first
	toolsShown = 5  // tools of each
)

// mostPlots is how many of them have a plot, so that the page stays small.
const mostPlots = 40

// A View is the state of weir for people. Times are in milliseconds.
type View struct {
	status.Report
	At        time.Time `json:"at"`
	Upstreams []*Row    `json:"upstreams"` // replaces the report's upstreams: the most important ones, the worst first
	Hidden    int       `json:"hidden"`    // further upstreams that match the filter
	Known     int       `json:"known"`     // number of all upstreams, regardless of the filter
	Open      int       `json:"open"`      // upstreams with a breaker that is not closed
	Paused    int       `json:"paused"`    // upstreams with a pause
	Sums                // of all upstreams

	Headline      string    `json:"headline"`                 // that all is well, or the worst problem
	Problems      []Problem `json:"problems,omitempty"`       // the worst first
	ProblemsKnown int       `json:"problems_known,omitempty"` // total number of problems

	Runs []status.Run `json:"runs,omitempty"` // the latest

	Filter string `json:"filter,omitempty"`
}

// Sums are figures per second in the last 10 s.
type Sums struct {
	Allowed   float64 `json:"allowed"`
	Waited    float64 `json:"waited"`
	Refused   float64 `json:"refused"`
	Throttled float64 `json:"throttled"` // by the upstream
	Failed    float64 `json:"failed"`
}

// A Row describes an upstream.
type Row struct {
	status.Upstream
	State string `json:"state"` // one of states
	Sums
	By      map[weir.Reason]float64 `json:"refused_by,omitempty"` // refusals per second, by reason
	P50MS   float64                 `json:"p50_ms"`               // of attempts
	P99MS   float64                 `json:"p99_ms"`
	Wait99  float64                 `json:"wait_p99_ms"`       // of waits that ended in a permit
	Waiting int                     `json:"waiting"`           // for a slot
	Least   int64                   `json:"left_percent"`      // of the limit with the least remaining; -1 if there is no limit
	Changes []Change                `json:"changes,omitempty"` // of its breakers, the oldest first

	of    *weir.Upstream
	at    time.Time       // when the state was read
	shown atomic.Bool     // a viewer was shown the row
	past  func() []sample // its recent samples, the oldest first
	plot  func() markup   // its recent samples as a picture
}

// Why returns the reason of most refusals; "" if there were none.
func (r *Row) Why() (why weir.Reason) {
	for reason, n := range r.By {
		if n > r.By[why] || n == r.By[why] && reason < why {
			why = reason
		}
	}
	return why
}

// A sight caches the last view. The zero value is ready.
type sight struct {
	looking sync.Mutex
	now     atomic.Pointer[View]
}

// seen returns a view of all upstreams that is at most a second old. It does not wait for a store: deliveries have
// their last counts.
func (b *Board) seen() *View {
	if v := b.sight.now.Load(); v != nil && time.Since(v.At) < renewed {
		return v
	}
	return b.again()
}

// again returns a new view, with the last counts of deliveries. Upstreams that are well and not shown are read only
// once per sample, and when they change.
func (b *Board) again() *View {
	b.sight.looking.Lock()
	defer b.sight.looking.Unlock()
	known := make(map[string]*Row)
	if last := b.sight.now.Load(); last != nil {
		for _, r := range last.Upstreams {
			known[r.Name] = r
		}
	}
	r := b.Page.Rest()
	r.Deliveries = b.letters.last()
	v := b.look(r, known)
	b.sight.now.Store(v)
	return v
}

// fresh returns a new view of all upstreams, with new counts of deliveries.
func (b *Board) fresh(ctx context.Context) *View {
	r := b.Page.Rest()
	r.Deliveries = b.Page.Counted(ctx)
	b.letters.now.Store(&counted{time.Now(), r.Deliveries})
	return b.look(r, nil)
}

// look returns a view of all upstreams, the worst first. It is immutable. Known rows that are recent enough are
// reused.
func (b *Board) look(r status.Report, known map[string]*Row) *View {
	v := &View{Report: r, At: time.Now()}
	v.Report.Upstreams = nil
	troubled := make(map[string]bool)
	for _, t := range v.Troubles {
		troubled[t.Upstream] = true
	}
	for name, u := range b.Page.Upstreams() {
		row := known[name]
		if row == nil || row.of != u || row.State != states[0] || troubled[name] || row.shown.Load() || v.At.Sub(row.at) >= step || !b.histories.touched(name).Before(row.at) {
			row = b.row(u, v.At)
		}
		if troubled[row.Name] {
			row.State = "trouble"
		}
		v.count(row)
		v.Upstreams = append(v.Upstreams, row)
	}
	v.Known = len(v.Upstreams)
	v.Runs = b.Page.LatestRuns(runsShown).Runs
	slices.SortFunc(v.Upstreams, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(severity(b.State), severity(a.State)), cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Allowed, a.Allowed), strings.Compare(a.Name, b.Name))
	})
	v.summarize()
	return v
}

// only returns the part of a view that a page shows: the rows that match the filter, and the open upstream in any
// case.
func (v *View) only(filter, open string) *View {
	part := *v
	part.Filter, part.Upstreams = filter, nil
	for _, r := range v.Upstreams {
		switch {
		case !strings.Contains(strings.ToLower(r.Name), strings.ToLower(filter)) && r.State != filter:
			if r.Name == open {
				part.Upstreams = append(part.Upstreams, r)
			}
		case len(part.Upstreams) < mostRows || r.Name == open:
			part.Upstreams = append(part.Upstreams, r)
		default:
			part.Hidden++
		}
	}
	for _, r := range part.Upstreams {
		r.shown.Store(true)
	}
	return &part
}

// view serves the view as JSON, for other programs that show it.
func (b *Board) view(w http.ResponseWriter, r *http.Request) {
	b.letters.count(r.Context(), b.Page)
	v := b.seen().only(filterOf(r), "")
	v.Deliveries = b.letters.last()
	if v.Upstreams == nil {
		v.Upstreams = []*Row{}
	}
	sendJSON(w, r, v)
}

// count adds a row to the totals.
func (v *View) count(r *Row) {
	v.Allowed, v.Waited, v.Refused = v.Allowed+r.Allowed, v.Waited+r.Waited, v.Refused+r.Refused
	v.Throttled, v.Failed = v.Throttled+r.Throttled, v.Failed+r.Failed
	if r.State == "open" || r.State == "half-open" {
		v.Open++
	}
	if len(r.Pauses) > 0 {
		v.Paused++
	}
}

// states are the states of an upstream, the worst last.
var states = []string{"ok", "waiting", "throttled", "failing", "refusing", "paused", "half-open", "open", "trouble"}

// notable is the share of failed or throttled attempts from which operators are notified.
const notable = 0.05

func severity(state string) int { return slices.Index(states, state) }

// row returns the present state of an upstream, with its recent activity.
func (b *Board) row(u *weir.Upstream, now time.Time) *Row {
	r := &Row{Upstream: b.Page.StateOf(u), State: states[0], Least: -1, of: u, at: now}
	r.add(b.histories.look(r.Name))
	r.past = sync.OnceValue(func() []sample { return b.histories.samples(r.Name) })
	r.plot = sync.OnceValue(func() markup { return plot(r.past()) })
	for _, l := range r.Limits {
		if l.KeysKnown == 0 && l.Full > 0 {
			if left := 100 * max(0, l.Left) / l.Full; r.Least < 0 || left < r.Least {
				r.Least = left
			}
		}
	}
	for _, f := range r.Flights {
		r.Waiting += f.Waiting
	}
	r.judge()
	return r
}

// judge sets the state to the worst that applies.
func (r *Row) judge() {
	worst := func(is bool, state string) {
		if is && severity(state) > severity(r.State) {
			r.State = state
		}
	}
	worst(r.Waited > 0 || r.Waiting > 0, "waiting")
	worst(r.Throttled > 0 && r.Throttled >= notable*r.attempts(), "throttled")
	worst(r.Failed > 0 && r.Failed >= notable*r.attempts(), "failing")
	worst(r.Refused > 0, "refusing")
	worst(len(r.Pauses) > 0, "paused")
	for _, k := range r.Breakers {
		worst(k.State != "closed", k.State)
	}
}

// add adds the activity of the latest step.
func (r *Row) add(last sample, by map[weir.Reason]uint64, changes []Change) {
	second := step.Seconds()
	each := func(n uint64) float64 { return float64(n) / second }
	r.Sums = Sums{each(last.allowed), each(last.waited), each(last.refused), each(last.throttled), each(last.failed)}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	r.P50MS, r.P99MS, r.Wait99, r.Changes = ms(last.p50), ms(last.p99), ms(last.wait99), changes
	for why, n := range by {
		if r.By == nil {
			r.By = make(map[weir.Reason]float64)
		}
		r.By[why] = each(n)
	}
}
