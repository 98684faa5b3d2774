package price

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/internal/doc"
)

const (
	maxFile = 1 << 20 // bytes
	maxRows = 10_000

	// Dearest is the highest price that is believed, in dollars for a million tokens;
	// what is above was most likely meant for one token or a thousand.
	Dearest = 10_000
)

// Parse reads a table in YAML or JSON; the file's name is for complaints. The error is
// Errors, with every mistake of the file:
//
//	currency: USD # the only one, and what is taken if it is missing
//	models:
//	  claude-3-haiku: {input: 0.25, output: 1.25, cache_read: 0.03, cache_write: 0.30}
//	  my-llama*: {input: 0, output: 0} # all models whose names begin so
//
// Prices are in dollars for a million tokens, with up to six decimals; cache_read and
// cache_write are what input costs if they are missing. A model may have other prices
// for long prompts: "long: {above: 200000, input: 2.5, output: 15}".
func Parse(file string, data []byte) (Table, error) {
	p := parser{file: file, table: Table{exact: map[string]Row{}}}
	p.document(data)
	if len(p.errs) > 0 {
		return Table{}, p.errs
	}
	p.table.sort()
	return p.table, nil
}

type parser struct {
	file  string
	errs  Errors
	table Table
}

func (p *parser) bad(n *yaml.Node, field, hint, format string, args ...any) {
	c := Complaint{File: p.file, Field: field, Problem: fmt.Sprintf(format, args...), Hint: hint}
	if n != nil {
		c.Line, c.Column = n.Line, n.Column
	}
	p.errs = append(p.errs, c)
}

func (p *parser) document(data []byte) {
	if len(data) > maxFile {
		p.bad(nil, "", "", "is larger than %d MiB", maxFile>>20)
		return
	}
	root, err := decode(data)
	switch {
	case err != nil:
		p.bad(nil, "", "", "broken YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	case root == nil:
		p.bad(nil, "models", "write a model with its prices below it", "there are no prices")
	default:
		p.root(root)
	}
}

// decode is the only document, nil if there is none. The YAML library panics at some
// broken input; that is an error like others.
func decode(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); err == io.EOF || err == nil && len(doc.Content) == 0 {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); err == nil {
		return nil, fmt.Errorf("a second document begins; a table is one, without ---")
	}
	return doc.Content[0], nil
}

func (p *parser) root(n *yaml.Node) {
	fields := []string{"currency", "models"}
	before := len(p.errs)
	var models *yaml.Node
	for key, value := range p.mapping(n, "") {
		switch key.Value {
		case "currency":
			if value.Value != "USD" {
				p.bad(value, "currency", "want USD: amounts in several currencies cannot be added up", "%s cannot be had", show(value))
			}
		case "models":
			models = value
		default:
			p.bad(key, show(key), doc.Suggest(key.Value, fields), "there is no such field")
		}
	}
	switch {
	case models != nil:
		p.models(models)
	case len(p.errs) == before:
		p.bad(n, "models", "write a model with its prices below it", "there are no prices")
	}
}

func (p *parser) models(n *yaml.Node) {
	if len(n.Content) > 2*maxRows {
		p.bad(n, "models", "", "has %d rows, and may have %d", len(n.Content)/2, maxRows)
		return
	}
	seen := map[string]*yaml.Node{}
	for key, value := range p.mapping(n, "models") {
		field := "models." + show(key)
		name := strings.ToLower(strings.TrimSpace(key.Value))
		star := strings.IndexByte(name, '*')
		switch first := seen[name]; {
		case name == "":
			p.bad(key, "models", "", "a model has no name")
		case star >= 0 && star < len(name)-1:
			p.bad(key, field, "a star may stand at the end", "has a star within the name")
		case first != nil:
			p.bad(key, field, "", "stands here twice, first in line %d, in other letters", first.Line)
		default:
			seen[name] = key
			p.row(name, field, value)
		}
	}
}

// mapping is the fields of a node; it complains of what is none and of what is there
// twice.
func (p *parser) mapping(n *yaml.Node, field string) func(func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			p.bad(n, field, "", "%s: want fields of its own, indented below it", show(n))
			return
		}
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			switch {
			case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
				p.bad(key, field, "", "want a plain word before the colon")
			case value.Kind == yaml.AliasNode:
				p.bad(value, join(field, show(key)), "write it out", "refers to another place of the file")
			case seen[key.Value] > 0:
				p.bad(key, join(field, show(key)), "", "stands here twice, first in line %d", seen[key.Value])
			default:
				seen[key.Value] = key.Line
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

var priceFields = []string{"input", "output", "cache_read", "cache_write"}

func (p *parser) row(name, field string, n *yaml.Node) {
	row := Row{Model: name}
	var long *yaml.Node
	row.Prices = p.prices(n, field, func(key, value *yaml.Node) bool {
		if key.Value == "long" {
			long = value
		}
		return key.Value == "long"
	}, "long")
	if long != nil {
		above := false
		row.Long = p.prices(long, field+".long", func(key, value *yaml.Node) bool {
			if key.Value == "above" {
				row.Above, above = p.tokens(value, field+".long.above"), true
			}
			return key.Value == "above"
		}, "above")
		if !above && long.Kind == yaml.MappingNode {
			p.bad(long, field+".long.above", "write the number of tokens above which a prompt is long", "is missing")
		}
	}
	if strings.HasSuffix(name, "*") {
		p.table.patterns = append(p.table.patterns, row)
	} else {
		p.table.exact[name] = row
	}
}

// prices reads the fields that all sorts of prices have; others are for also, which
// says whether it knows them.
func (p *parser) prices(n *yaml.Node, field string, also func(key, value *yaml.Node) bool, more ...string) Prices {
	found := map[string]Amount{}
	whole := n.Kind == yaml.MappingNode
	for key, value := range p.mapping(n, field) {
		at := join(field, show(key))
		switch {
		case key.Value == "input" || key.Value == "output" || key.Value == "cache_read" || key.Value == "cache_write":
			found[key.Value] = p.price(value, at)
		case !also(key, value):
			p.bad(key, at, doc.Suggest(key.Value, append(more, priceFields...)), "there is no such field")
			whole = false // it may be the one that is missing
		}
	}
	for _, name := range priceFields[:2] {
		if _, ok := found[name]; !ok && whole {
			p.bad(n, join(field, name), "", "is missing")
		}
	}
	prices := Prices{Input: found["input"], Output: found["output"], CacheRead: found["input"], CacheWrite: found["input"]}
	if a, ok := found["cache_read"]; ok {
		prices.CacheRead = a
	}
	if a, ok := found["cache_write"]; ok {
		prices.CacheWrite = a
	}
	return prices
}

// price reads dollars for a million tokens.
func (p *parser) price(n *yaml.Node, field string) Amount {
	text := strings.TrimSpace(n.Value)
	const hint = "write dollars for a million tokens, as 0.25"
	whole, part, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || !plain(whole) || !plain(part) || whole+part == "":
		p.bad(n, field, hint, "%s is not a price", show(n))
	case strings.HasPrefix(text, "-"):
		p.bad(n, field, "write 0 for what costs nothing", "%s is negative", text)
	case len(part) > 6 && strings.Trim(part[6:], "0") != "":
		p.bad(n, field, "", "%s has more than six decimals", show(n))
	default:
		dollars, err := strconv.ParseInt("0"+whole, 10, 64)
		micros, _ := strconv.ParseInt((part + "000000")[:6], 10, 64)
		if err == nil && dollars*1_000_000+micros <= Dearest*1_000_000 && dollars <= Dearest {
			// A millionth of a dollar for a million tokens is a millionth of that for one.
			return Amount(dollars*1_000_000 + micros)
		}
		p.bad(n, field, hint, "%s is more than %d dollars for a million tokens", show(n), Dearest)
	}
	return 0
}

func (p *parser) tokens(n *yaml.Node, field string) int64 {
	v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v <= 0 || v > 1e9 {
		p.bad(n, field, "write a number of tokens, as 200000", "%s is not a number of tokens", show(n))
		return 0
	}
	return v
}

// plain reports whether s has nothing but digits; it may be empty.
func plain(s string) bool { return s == "" || len(s) < 100 && digits(s) }

// show is a node as a complaint shows it: on one line and not too long.
func show(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "fields"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind != yaml.ScalarNode || n.Value == "":
		return "nothing"
	case len(n.Value) > 60:
		return strconv.Quote(n.Value[:57] + "...")
	case strings.ContainsFunc(n.Value, func(r rune) bool {
		return r <= ' ' || r == '"' || r == 0x7f || r > 0x7e && r < 0xa1 || r > 0x2000 && r < 0x2070
	}):
		return strconv.Quote(n.Value)
	}
	return n.Value
}
