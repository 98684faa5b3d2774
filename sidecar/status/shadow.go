package status

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
)

// A Trial is what a limit with shadow would have done.
type Trial struct {
	Name string     `json:"name"`
	Rule string     `json:"rule"`
	Keys []TrialKey `json:"keys,omitempty"` // those that would have been refused or would have waited most often
	Counts
}

// A TrialKey is what the limit would have done to attempts with one key.
type TrialKey struct {
	Key string `json:"key"`
	Counts
}

// Counts are numbers of attempts.
type Counts struct {
	Allowed uint64 `json:"allowed"` // at once; not counted by key
	Waited  uint64 `json:"waited"`
	Refused uint64 `json:"refused"`
	WaitMS  int64  `json:"wait_ms"` // the mean wait of those that waited
}

func countsOf(c weir.TrialCount) Counts {
	n := Counts{Allowed: c.Allowed, Waited: c.Waited, Refused: c.Refused}
	if c.Waited > 0 {
		n.WaitMS = (c.Wait / time.Duration(c.Waited)).Milliseconds()
	}
	return n
}

// trialsOf returns the trials of an upstream.
func trialsOf(u *weir.Upstream) (all []Trial) {
	for _, v := range u.Trials() {
		t := Trial{Name: v.Limit.Name, Rule: v.Limit.String() + " " + v.Limit.UnitName(), Counts: countsOf(v.TrialCount)}
		keys := slices.SortedFunc(maps.Keys(v.Keys), func(a, b string) int {
			x, y := v.Keys[a], v.Keys[b]
			return cmp.Or(cmp.Compare(y.Refused, x.Refused), cmp.Compare(y.Waited, x.Waited), cmp.Compare(a, b))
		})
		for _, key := range keys[:min(len(keys), keysShown)] {
			t.Keys = append(t.Keys, TrialKey{key, countsOf(v.Keys[key])})
		}
		all = append(all, t)
	}
	return all
}

// TrialColumns are the titles of a table of trials, whose rows are those of Cells.
var TrialColumns = []string{"Shadow limit", "Key", "Configured", "Allowed", "Would wait", "Would be refused", "Mean wait"}

// Cells returns the rows of a trial: all keys together, and each key.
func (t *Trial) Cells() [][]string {
	row := func(key, rule, allowed string, c Counts) []string {
		return []string{t.Name, dash(key), rule, allowed, fmt.Sprint(c.Waited), fmt.Sprint(c.Refused), zero(c.WaitMS, "-")}
	}
	all := [][]string{row("", t.Rule, fmt.Sprint(t.Allowed), t.Counts)}
	for _, k := range t.Keys {
		all = append(all, row(k.Key, "", "", k.Counts))
	}
	return all
}

func printTrials(w io.Writer, trials []Trial) {
	for i := range trials {
		if i == 0 {
			fmt.Fprintln(w, "  "+strings.ToUpper(strings.Join(TrialColumns, "\t")))
		}
		for _, row := range trials[i].Cells() {
			fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
		}
	}
}
