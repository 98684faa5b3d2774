// Package price says what calls to language models cost, from a table that is data,
// and adds it up.
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

// Prices are what one token of each sort costs.
type Prices struct {
	Input, Output         Amount
	CacheRead, CacheWrite Amount // of input that is read from the provider's cache, or written to it
	WriteHour             Amount // of input that is written to it for an hour
}

// of is what a call costs.
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

// A Row is what the table says of one model.
type Row struct {
	Model string // or a pattern: the beginning of names, and a star
	Prices
	Above int64  // prompts of more tokens than this cost Long; 0 means that none do
	Long  Prices // of the whole call then

	Tiers map[string]Tier // of service, by the providers' names in lower case
}

// Cost is what a call costs that has used so much, at the service tier that served it.
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

// Assumed reports whether the row is for all models that have none of their own.
func (r *Row) Assumed() bool { return r.Model == anyModel }

// A Table has the prices of models. It does not change; the zero Table knows none.
type Table struct {
	exact    map[string]Row
	patterns []Row           // the longest first
	tiers    map[string]Tier // of models whose rows do not name the tier
}

//go:embed prices.yaml
var builtIn []byte

var builtInTable = sync.OnceValue(func() Table {
	t, err := Parse("prices.yaml", builtIn)
	if err != nil {
		panic("price: built-in table: " + err.Error()) // a test reads it
	}
	return t
})

// BuiltIn is the table that comes with weir: list prices of prices.yaml, each with its
// source and date. Other prices go into a table that is laid over it: see Table.Over.
func BuiltIn() Table { return builtInTable() }

// Over is t laid over below: rows of t go before those of below with the same model.
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

// Cost is what a call costs, and whether the table knows the model. Usage that the
// answer did not say costs nothing that is known: false, too.
func (t Table) Cost(model string, u llm.Usage) (Amount, bool) {
	row, ok := t.Find(model)
	if !ok || !u.Said {
		return 0, false
	}
	return row.Cost(u), true
}

// All is every row, by model.
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
