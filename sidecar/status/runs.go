package status

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/seed1158cd35/weir/internal/runs"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/observe"
)

// Runs is the response to GET /v1/runs.
type Runs struct {
	Runs    []Run `json:"runs"`    // those with the latest calls first
	Dropped int64 `json:"dropped"` // earlier runs, about which nothing is known any more
}

// A Run is what a run has used since this process started.
type Run struct {
	Name      string           `json:"name"` // "" for calls without one
	First     time.Time        `json:"first"`
	Last      time.Time        `json:"last"`
	Calls     int64            `json:"calls"`  // that weir did not refuse
	Tokens    int64            `json:"tokens"` // of models
	USD       float64          `json:"usd"`
	Unpriced  int64            `json:"unpriced,omitempty"` // answers of models without a known price
	Tools     map[string]int64 `json:"tools,omitempty"`    // calls by tool
	Refused   int64            `json:"refused"`
	RefusedBy map[string]int64 `json:"refused_by,omitempty"` // by limit, or by another reason
	Upstreams []OfUpstream     `json:"upstreams,omitempty"`  // the limits of the run
}

// longestName is the largest number of bytes of a name in a response.
const longestName = 256

// cleanName returns a name that a client chose, without credentials of a known form and without control characters.
func cleanName(name string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, observe.Redact(name, longestName))
}

func cleanNames(of map[string]int64) map[string]int64 {
	clean := make(map[string]int64, len(of))
	for name, n := range of {
		clean[cleanName(name)] += n
	}
	return clean
}

// runOf converts a run, without its limits.
func runOf(r *runs.Run) Run {
	return Run{
		Name: cleanName(r.Name), First: r.First, Last: r.Last, Calls: r.Calls, Tokens: r.Tokens, USD: float64(r.Dollars) / 1e6, Unpriced: r.Unpriced,
		Tools: cleanNames(r.Tools), Refused: r.Refused, RefusedBy: cleanNames(r.RefusedBy),
	}
}

// LatestRuns returns the runs with the latest calls, at most n, without their limits.
func (p *Page) LatestRuns(n int) Runs {
	all, dropped := p.Runs.Latest(n)
	out := Runs{Runs: make([]Run, 0, len(all)), Dropped: dropped}
	for i := range all {
		out.Runs = append(out.Runs, runOf(&all[i]))
	}
	return out
}

// runs serves all runs, or the one of the query with all of its limits.
func (p *Page) runs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	for name := range query {
		if name != "name" {
			problem(w, http.StatusBadRequest, name+": unknown parameter; want name")
			return
		}
	}
	one := pause.Bounded(p.name(runs.Scope, query.Get("name")))
	all, dropped := p.Runs.Latest(1 << 30)
	out := Runs{Runs: []Run{}, Dropped: dropped}
	for i := range all {
		if query.Has("name") && all[i].Name != one {
			continue
		}
		run := runOf(&all[i])
		run.Upstreams = p.limitsOf(map[string]string{runs.Scope: all[i].Name}, query.Has("name"))
		out.Runs = append(out.Runs, run)
	}
	if query.Has("name") && len(out.Runs) == 0 {
		problem(w, http.StatusNotFound, fmt.Sprintf("no call of run %q is known; %d earlier runs were dropped", query.Get("name"), dropped))
		return
	}
	answer(w, out)
}

// limitsOf returns the limits of the keys, by upstream. further includes limits with further scopes, which takes longer.
func (p *Page) limitsOf(keys map[string]string, further bool) (all []OfUpstream) {
	known := p.Upstreams()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		of := ofUpstream(known[name], keys, further)
		for _, limits := range [][]Limit{of.Limits, of.Unknown} {
			for i := range limits {
				limits[i].Key = cleanName(limits[i].Key)
			}
		}
		if len(of.Limits)+len(of.Unknown) > 0 {
			all = append(all, of)
		}
	}
	return all
}

// Merge adds the runs of another process. Calls of runs with the same name are added. Their limits are those of the process
// with the later call.
func (r *Runs) Merge(other Runs) {
	r.Dropped += other.Dropped
	for _, o := range other.Runs {
		i := slices.IndexFunc(r.Runs, func(known Run) bool { return known.Name == o.Name })
		if i < 0 {
			r.Runs = append(r.Runs, o)
			continue
		}
		r.Runs[i].add(o)
	}
	slices.SortStableFunc(r.Runs, func(a, b Run) int { return b.Last.Compare(a.Last) })
}

func (r *Run) add(o Run) {
	if o.First.Before(r.First) {
		r.First = o.First
	}
	if o.Last.After(r.Last) {
		r.Last, r.Upstreams = o.Last, o.Upstreams
	}
	r.Calls, r.Tokens, r.USD, r.Unpriced, r.Refused = r.Calls+o.Calls, r.Tokens+o.Tokens, r.USD+o.USD, r.Unpriced+o.Unpriced, r.Refused+o.Refused
	r.Tools, r.RefusedBy = sum(r.Tools, o.Tools), sum(r.RefusedBy, o.RefusedBy)
}

func sum(a, b map[string]int64) map[string]int64 {
	all := make(map[string]int64)
	for _, m := range []map[string]int64{a, b} {
		for name, n := range m {
			all[name] += n
		}
	}
	return all
}

// fewNames is how many tools and limits of each run a list of several runs shows.
const fewNames = 3

// Print writes the runs as a table for people.
func (r *Runs) Print(w io.Writer) error {
	if len(r.Runs) == 0 {
		_, err := fmt.Fprintln(w, "no runs: weir counts calls by run if keys of callers has run, and in weir run --budget")
		return err
	}
	most := fewNames
	if len(r.Runs) == 1 {
		most = 1 << 30
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tCALLS\tTOKENS\tUSD\tREFUSED\tLAST CALL\tTOOLS\tREFUSED BY\tREMAINING")
	for i := range r.Runs {
		u := &r.Runs[i]
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%d\t%v ago\t%s\t%s\t%s\n", dash(u.Name), u.Calls, u.Tokens, u.Dollars(), u.Refused,
			time.Since(u.Last).Round(time.Second), u.MostCalled(most), byCount(u.RefusedBy, most), u.remaining(most))
	}
	if r.Dropped > 0 {
		fmt.Fprintf(t, "%d earlier runs were dropped\n", r.Dropped)
	}
	return t.Flush()
}

// Dollars describes the cost of the run.
func (r *Run) Dollars() string {
	s := limit.Dollars(int64(r.USD*1e6 + 0.5))
	if r.Unpriced > 0 {
		s += fmt.Sprintf(" and %d unpriced", r.Unpriced)
	}
	return s
}

// MostCalled lists the tools with the most calls: "search 12, fetch 5".
func (r *Run) MostCalled(most int) string { return byCount(r.Tools, most) }

// byCount lists names with their counts, the largest first.
func byCount(of map[string]int64, most int) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return few(parts, most)
}

// few joins texts. It replaces those beyond the maximum by their number.
func few(parts []string, most int) string {
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most:most], fmt.Sprintf("%d more", more))
	}
	return dash(strings.Join(parts, ", "))
}

// remaining lists what remains of the run's limits.
func (r *Run) remaining(most int) string {
	var parts []string
	for _, u := range r.Upstreams {
		for i := range u.Limits {
			l := &u.Limits[i]
			name := l.Name
			if strings.Contains(l.Key, "=") && strings.Contains(l.Key, ", ") {
				name += " for " + l.Key
			}
			parts = append(parts, name+" "+l.Remaining("/"))
		}
	}
	return few(parts, most)
}
