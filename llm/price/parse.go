package price

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

const (
	maxRows = 10_000

	// dearest is the maximum price in dollars per million tokens. A higher number was probably meant as a price for one
	// token or a thousand tokens.
	dearest = 10_000
)

var bounds = doc.Bounds{Bytes: 1 << 20, Nodes: 100_000, Depth: 10}

// Parse parses a table in YAML or JSON. The file name is only used in errors. The error is Errors with all mistakes of
// the file:
//
//	currency: USD # the default, and the only supported currency
//	models:
//	  claude-3-haiku: {input: 0.25, output: 1.25, cache_read: 0.03, cache_write: 0.30}
//	  my-llama*: {input: 0, output: 0} # all models whose names start with my-llama
//
// Prices are dollars per million tokens with up to six decimals. The default of cache_read and cache_write is the input
// price. The default of cache_write_1h (cached for an hour) is twice the input price if cache_write is set, and
// otherwise the input price.
//
// A model may have other prices for long prompts: "long: {above: 200000, input: 2.5, output: 15}". tiers has the prices
// of service tiers, or a factor for the list prices: "tiers: {flex: 0.5, priority: {input: 3.5, output: 14}}". At the
// top level, tiers applies to all models.
func Parse(file string, data []byte) (Table, error) {
	p := parser{table: Table{exact: map[string]Row{}}}
	p.Reader = doc.Reader{File: file, What: "a table", Bounds: bounds}
	if root := p.Read(data); root != nil {
		p.root(root)
	}
	if len(p.Errs) > 0 {
		return Table{}, p.Errs.Sorted()
	}
	p.table.sort()
	return p.table, nil
}

type parser struct {
	doc.Reader
	table Table
}

func (p *parser) root(n *doc.Node) {
	before := len(p.Errs)
	p.Fields(n, map[string]func(*doc.Node){
		"currency": func(n *doc.Node) {
			if n.Text != "USD" {
				p.Bad(n, "want USD: amounts in several currencies cannot be added up", "%s is not supported", show(n))
			}
		},
		"models": p.models,
		"tiers":  func(n *doc.Node) { p.table.tiers = p.tiers(n) },
	})
	if n.Get("models") == nil && len(p.Errs) == before {
		p.Missing(n, "models", "write a model with its prices below it", "there are no prices")
	}
}

func (p *parser) models(n *doc.Node) {
	if !p.IsMapping(n) {
		return
	}
	if len(n.Fields) > maxRows {
		p.Bad(n, "", "has %d rows; at most %d are allowed", len(n.Fields), maxRows)
		return
	}
	seen := map[string]*doc.Node{}
	for _, e := range n.Fields {
		name := strings.ToLower(strings.TrimSpace(e.Name))
		star := strings.IndexByte(name, '*')
		switch first := seen[name]; {
		case name == "":
			p.Bad(e.Key, "", "a model has no name")
		case star >= 0 && star < len(name)-1:
			p.Bad(e.Key, "a star is allowed only at the end", "has a star within the name")
		case first != nil:
			p.Bad(e.Key, "", "is given twice, first in line %d, in different case", first.Line)
		default:
			seen[name] = e.Key
			p.row(name, e.Value)
		}
	}
}

var priceFields = []string{"input", "output", "cache_read", "cache_write", "cache_write_1h"}

func (p *parser) row(name string, n *doc.Node) {
	row := Row{Model: name}
	var long *doc.Node
	row.Prices = p.prices(n, map[string]func(*doc.Node){
		"long":  func(n *doc.Node) { long = n },
		"tiers": func(n *doc.Node) { row.Tiers = p.tiers(n) },
	})
	if long != nil {
		row.Long = p.prices(long, map[string]func(*doc.Node){"above": func(n *doc.Node) { row.Above = p.tokens(n) }})
		if long.Kind == doc.Mapping && long.Get("above") == nil {
			p.Missing(long, "above", "write the number of tokens above which a prompt is long", "is missing")
		}
	}
	if strings.HasSuffix(name, "*") {
		p.table.patterns = append(p.table.patterns, row)
	} else {
		p.table.exact[name] = row
	}
}

// tiers reads service tiers. Each is a factor or has prices.
func (p *parser) tiers(n *doc.Node) map[string]Tier {
	if !p.IsMapping(n) {
		return nil
	}
	all := make(map[string]Tier, len(n.Fields))
	for _, e := range n.Fields {
		var t Tier
		if e.Value.Kind == doc.Mapping {
			t.Prices = new(p.prices(e.Value, map[string]func(*doc.Node){}))
		} else if t.Factor = Factor(p.price(e.Value)); t.Factor == 0 {
			t.Prices = new(Prices) // free
		}
		all[strings.ToLower(e.Name)] = t
	}
	return all
}

// prices reads the fields common to all prices, and the additional fields given by the caller.
func (p *parser) prices(n *doc.Node, fields map[string]func(*doc.Node)) Prices {
	found := map[string]Amount{}
	for _, name := range priceFields {
		fields[name] = func(n *doc.Node) { found[name] = p.price(n) }
	}
	p.Fields(n, fields)
	whole := n.Kind == doc.Mapping && !slices.ContainsFunc(n.Fields, func(e doc.Entry) bool {
		return fields[e.Name] == nil // an unknown field may be a misspelling of the missing one
	})
	for _, name := range priceFields[:2] {
		if n.Get(name) == nil && whole {
			p.Missing(n, name, "", "is missing")
		}
	}
	prices := Prices{Input: found["input"], Output: found["output"], CacheRead: found["input"], CacheWrite: found["input"], WriteHour: found["input"]}
	if a, ok := found["cache_read"]; ok {
		prices.CacheRead = a
	}
	if a, ok := found["cache_write"]; ok {
		prices.CacheWrite = a
		prices.WriteHour = prices.Input.Add(prices.Input) // as for Anthropic: 1.25 times the input price for five minutes, twice for an hour
	}
	if a, ok := found["cache_write_1h"]; ok {
		prices.WriteHour = a
	}
	return prices
}

func (p *parser) price(n *doc.Node) Amount {
	text := strings.TrimSpace(n.Text)
	const hint = "write dollars per million tokens, such as 0.25"
	whole, part, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	switch {
	case n.Kind != doc.Scalar || !plain(whole) || !plain(part) || whole+part == "":
		p.Bad(n, hint, "%s is not a price", show(n))
	case strings.HasPrefix(text, "-"):
		p.Bad(n, "write 0 if it costs nothing", "%s is negative", text)
	case len(part) > 6 && strings.Trim(part[6:], "0") != "":
		p.Bad(n, "", "%s has more than six decimals", show(n))
	default:
		dollars, err := strconv.ParseInt("0"+whole, 10, 64)
		micros, _ := strconv.ParseInt((part + "000000")[:6], 10, 64)
		if err == nil && dollars*1_000_000+micros <= dearest*1_000_000 && dollars <= dearest {
			// A millionth of a dollar for a million tokens is 1e-12 dollars for one token.
			return Amount(dollars*1_000_000 + micros)
		}
		p.Bad(n, hint, "%s is more than %d dollars per million tokens", show(n), dearest)
	}
	return 0
}

func (p *parser) tokens(n *doc.Node) int64 {
	v, err := strconv.ParseInt(strings.ReplaceAll(n.Text, "_", ""), 10, 64)
	if n.Kind != doc.Scalar || err != nil || v <= 0 || v > 1e9 {
		p.Bad(n, "write a number of tokens, such as 200000", "%s is not a number of tokens", show(n))
		return 0
	}
	return v
}

// plain reports whether s is empty or contains only digits.
func plain(s string) bool { return s == "" || len(s) < 100 && digits(s) }

// show formats a node for an error message: on one line, and shortened.
func show(n *doc.Node) string {
	switch {
	case n.Kind == doc.Mapping:
		return "fields"
	case n.Kind == doc.List:
		return "a list"
	case n.Kind != doc.Scalar || n.Text == "":
		return "nothing"
	case len(n.Text) > 60:
		return strconv.Quote(n.Text[:57] + "...")
	case strings.ContainsFunc(n.Text, func(r rune) bool {
		return r <= ' ' || r == '"' || r == 0x7f || r > 0x7e && r < 0xa1 || r > 0x2000 && r < 0x2070
	}):
		return strconv.Quote(n.Text)
	}
	return n.Text
}
