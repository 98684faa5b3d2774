// Package runs counts what each run of an agent uses: calls, tokens, dollars, tools, and what was refused.
package runs

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	mostRuns  = 200 // that a Table contains
	mostNames = 20  // of tools and of limits that a run has
)

// Scope is the scope of callers whose values are the names of runs.
const Scope = "run"

// Other is the name of all tools or limits beyond the maximum.
const Other = "(other)"

// A Table contains the latest runs. If there are too many, the one without a call for the longest time is dropped. The zero
// Table is ready. A nil Table counts nothing. It is safe for concurrent use and must not be copied.
type Table struct {
	mu      sync.Mutex
	runs    map[string]*run
	dropped int64
}

// A run is a Run that is being counted.
type run struct {
	Run
	inFlight int64
}

// A Run is what a run has used. A Run is a value, but its maps are shared.
type Run struct {
	Name      string           // as it is stored: it may be a hash
	First     time.Time        // begin of its first call
	Last      time.Time        // begin or end of its latest call
	Calls     int64            // calls that weir did not refuse
	Tokens    int64            // input and output of models
	Dollars   int64            // cost of models, in millionths of a dollar
	Unpriced  int64            // answers of models without a known price
	Tools     map[string]int64 // calls by tool
	Refused   int64            // calls that weir refused
	RefusedBy map[string]int64 // refused calls, by limit or by another reason
}

// Begin reports that a call of a run has begun.
func (t *Table) Begin(name string) {
	t.change(name, func(r *run) { r.inFlight++ })
}

// End reports that a call has ended. refusedBy is the limit, or another reason, by which weir refused it; "" if weir did not.
// tool is the called tool, or "".
func (t *Table) End(name, tool, refusedBy string) {
	t.change(name, func(r *run) {
		r.inFlight = max(0, r.inFlight-1)
		if refusedBy != "" {
			r.Refused++
			count(r.RefusedBy, refusedBy)
			return
		}
		r.Calls++
		if tool != "" {
			count(r.Tools, tool)
		}
	})
}

// Add adds the usage of an answer of a model: tokens, and their cost in millionths of a dollar unless it is unknown.
func (t *Table) Add(name string, tokens, dollars int64, priced bool) {
	t.change(name, func(r *run) {
		r.Tokens, r.Dollars = r.Tokens+tokens, r.Dollars+dollars
		if !priced {
			r.Unpriced++
		}
	})
}

// change changes a run. It adds the run if it is new.
func (t *Table) change(name string, do func(*run)) {
	if t == nil {
		return
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.runs[name]
	if r == nil {
		r = t.add(name, now)
	}
	r.Last = now
	do(r)
}

// add adds a run, and drops the one without a call for the longest time if there are too many.
func (t *Table) add(name string, now time.Time) *run {
	if len(t.runs) >= mostRuns {
		oldest := slices.MinFunc(slices.Collect(maps.Values(t.runs)), func(a, b *run) int {
			return cmp.Or(cmp.Compare(min(1, a.inFlight), min(1, b.inFlight)), a.Last.Compare(b.Last))
		})
		delete(t.runs, oldest.Name)
		t.dropped++
	}
	r := &run{Run: Run{Name: name, First: now, Tools: make(map[string]int64), RefusedBy: make(map[string]int64)}}
	if t.runs == nil {
		t.runs = make(map[string]*run)
	}
	t.runs[name] = r
	return r
}

// count adds 1 to a name, or to Other if there are too many names.
func count(of map[string]int64, name string) {
	if _, known := of[name]; !known && len(of) >= mostNames {
		name = Other
	}
	of[name]++
}

// Latest returns at most n runs, those with the latest calls first, and how many runs were dropped.
func (t *Table) Latest(n int) (all []Run, dropped int64) {
	if t == nil {
		return nil, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.runs {
		c := r.Run
		c.Tools, c.RefusedBy = maps.Clone(r.Tools), maps.Clone(r.RefusedBy)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Run) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name)) })
	return all[:min(n, len(all))], t.dropped
}
