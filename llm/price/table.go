// Package price calculates the costs of calls to language models from a table of prices, and adds them up.
package price

import (
	_ "embed"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seed1158cd35/weir/llm"
)

// Prices has the price of one token of each kind.
type Prices struct {
	Input, Output         Amount
	CacheRead, CacheWrite Amount // input that is read from or written to the provider's cache
	WriteHour             Amount // input that is cached for an hour
}

func (p Prices) of(u llm.Usage) Amount {
	read := min(max(u.CacheRead, 0), max(u.Input, 0))
	write := min(max(u.CacheWrite, 0), max(u.Input, 0)-read)
	sum := times(u.Input-read-write, p.Input)
	sum = sum.Add(times(read, p.CacheRead))
	hour := min(max(u.WriteHour, 0), write)
	sum = sum.Add(times(write-hour, p.CacheWrite))
	sum = sum.Add(times(hour, p.WriteHour))
	return sum.Add(times(u.Output, p.Output))
}

// A Row has the prices of one model.
type Row struct {
	Model string // or a pattern: the start of a name, followed by a star
	Prices
	Above int64  // Long applies to prompts of more tokens than this; 0 means never
	Long  Prices // prices of all tokens of a call with a long prompt

	Tiers map[string]Tier // service tiers by the providers' names, in lower case
}

// Cost returns the cost of a call with usage u at the service tier in u.
func (r *Row) Cost(u llm.Usage) Amount {
	prices := &r.Prices
	if r.Above > 0 && u.Input > r.Above {
		prices = &r.Long
	}
	if u.Tier == "" {
		return prices.of(u)
	}
	factors := make([]Factor, 0, 2)
	for name := range strings.SplitSeq(u.Tier, "+") {
		switch t := r.tier(name); {
		case t.Prices != nil:
			prices = t.Prices
		case t.Factor > 0:
			factors = append(factors, t.Factor)
		}
	}
	cost := prices.of(u)
	for _, f := range factors {
		cost = f.of(cost)
	}
	return cost
}

// Assumed reports whether the row is the default price for models without another row.
func (r *Row) Assumed() bool { return r.Model == anyModel }

// A Table has the prices of models. It is immutable and safe for concurrent use. The zero Table has no prices.
type Table struct {
	exact    map[string]Row
	patterns []Row           // longest first
	tiers    map[string]Tier // for models whose rows do not have the tier
}

//go:embed prices.yaml
var builtIn []byte

var builtInTable = sync.OnceValue(func() Table {
	t, err := Parse("prices.yaml", builtIn)
	if err != nil {
		panic("price: built-in table: " + err.Error()) // a test parses it
	}
	return t
})

// BuiltIn returns the built-in table: the list prices of prices.yaml, each with its source and date. Table.Over replaces
// prices.
func BuiltIn() Table { return builtInTable() }

// Over returns the rows of both tables. A row of t replaces the row of below for the same model.
func (t Table) Over(below Table) Table {
	both := Table{exact: maps.Clone(below.exact)}
	if both.exact == nil {
		both.exact = map[string]Row{}
	}
	maps.Copy(both.exact, t.exact)
	both.tiers = maps.Clone(below.tiers)
	if both.tiers == nil {
		both.tiers = map[string]Tier{}
	}
	maps.Copy(both.tiers, t.tiers)
	both.patterns = slices.Clone(t.patterns)
	for _, row := range below.patterns {
		if !slices.ContainsFunc(t.patterns, func(own Row) bool { return own.Model == row.Model }) {
			both.patterns = append(both.patterns, row)
		}
	}
	both.sort()
	return both
}

func (t *Table) sort() {
	slices.SortStableFunc(t.patterns, func(a, b Row) int { return len(b.Model) - len(a.Model) })
}

// Cost returns the cost of a call. It returns false if the table does not have the model or the response did not report
// usage.
func (t Table) Cost(model string, u llm.Usage) (Amount, bool) {
	row, ok := t.Find(model)
	if !ok || !u.Said {
		return 0, false
	}
	return row.Cost(u), true
}

// All iterates over all rows, sorted by model.
func (t Table) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		rows := slices.AppendSeq(slices.Clone(t.patterns), maps.Values(t.exact))
		slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Model, b.Model) })
		for _, row := range rows {
			if !yield(row) {
				return
			}
		}
	}
}
