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

// mostRows is how many upstreams a page shows: those that matter most. The filter finds the rest.
const mostRows = 100

// mostPlots is how many of them have a plot, so that the page stays small.
const mostPlots = 40

// A View is what weir is doing, for people. Times are in milliseconds.
type View struct {
	status.Report
	At        time.Time `json:"at"`
	Upstreams []*Row    `json:"upstreams"` // in place of the report's: those that matter most, the worst first
	Hidden    int       `json:"hidden"`    // upstreams that match the filter beside them
	Known     int       `json:"known"`     // upstreams in all, whatever the filter
	Open      int       `json:"open"`      // of these, with a breaker that is not closed
	Paused    int       `json:"paused"`    // and with a pause
	Sums                // of all of them

	Headline      string    `json:"headline"`                 // whether all is well, or the worst problem
	Problems      []Problem `json:"problems,omitempty"`       // the worst first
	ProblemsKnown int       `json:"problems_known,omitempty"` // how many there are

	Filter string `json:"filter,omitempty"`
}

// Sums are figures a second, of the latest 10 s.
type Sums struct {
	Allowed   float64 `json:"allowed"`
	Waited    float64 `json:"waited"`
	Refused   float64 `json:"refused"`
	Throttled float64 `json:"throttled"` // by the upstream
	Failed    float64 `json:"failed"`
}

// A Row is an upstream.
type Row struct {
	status.Upstream
	State string `json:"state"` // one of states
	Sums
	By      map[weir.Reason]float64 `json:"refused_by,omitempty"` // refusals a second, by reason
	P50MS   float64                 `json:"p50_ms"`               // of attempts
	P99MS   float64                 `json:"p99_ms"`
	Wait99  float64                 `json:"wait_p99_ms"`       // of waits that ended in a permit
	Waiting int                     `json:"waiting"`           // for a slot
	Least   int64                   `json:"left_percent"`      // of the scarcest limit; -1 if there is none
	Changes []Change                `json:"changes,omitempty"` // of its breakers, the oldest first

	of    *weir.Upstream
	at    time.Time       // when it was looked at
	shown atomic.Bool     // somebody was shown it
	past  func() []sample // what it did of late, the oldest first
	plot  func() markup   // that, as a picture
}

// Why is the reason of most refusals; "" if there was none.
func (r *Row) Why() (why weir.Reason) {
	for reason, n := range r.By {
		if n > r.By[why] || n == r.By[why] && reason < why {
			why = reason
		}
	}
	return why
}

// A sight is what was seen last. The zero value is ready.
type sight struct {
	looking sync.Mutex
	now     atomic.Pointer[View]
}

// seen is a view of all upstreams that is no older than a second. It waits for no store: deliveries are as they were counted last.
func (b *Board) seen() *View {
	if v := b.sight.now.Load(); v != nil && time.Since(v.At) < renewed {
		return v
	}
	return b.again()
}

// again looks now, deliveries as they were counted last. Upstreams that nobody is shown, and that are well, are looked at as
// often as it is noted what they did, and when they change.
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

// fresh is a view of all upstreams as of now, deliveries counted anew.
func (b *Board) fresh(ctx context.Context) *View {
	r := b.Page.Rest()
	r.Deliveries = b.Page.Counted(ctx)
	b.letters.now.Store(&counted{time.Now(), r.Deliveries})
	return b.look(r, nil)
}

// look makes a view of all upstreams, the worst first. It is not changed any more. Rows that are known and as good as new are
// taken as they are.
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
	slices.SortFunc(v.Upstreams, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(severity(b.State), severity(a.State)), cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Allowed, a.Allowed), strings.Compare(a.Name, b.Name))
	})
	v.summarize()
	return v
}

// only is the part of a view that a page shows: what matches the filter, and the upstream that is open whatever it does.
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

// view answers what weir is doing, as JSON: as the page has it, for other programs that show it.
func (b *Board) view(w http.ResponseWriter, r *http.Request) {
	b.letters.count(r.Context(), b.Page)
	v := b.seen().only(filterOf(r), "")
	v.Deliveries = b.letters.last()
	if v.Upstreams == nil {
		v.Upstreams = []*Row{}
	}
	sendJSON(w, r, v)
}

// count adds a row to what the page says of all.
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

// states are the words for how an upstream is, the worst last.
var states = []string{"ok", "waiting", "throttled", "failing", "refusing", "paused", "half-open", "open", "trouble"}

// notable is the share of attempts that have to fail or be throttled so that an operator should know.
const notable = 0.05

func severity(state string) int { return slices.Index(states, state) }

// row is an upstream as of now, with what it did of late.
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

// judge finds the word for how the upstream is: the worst that is so.
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

// add adds what the upstream did in the latest step.
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
