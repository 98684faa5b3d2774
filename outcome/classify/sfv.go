package classify

import (
	"strconv"
	"strings"
	"time"
)

// An item is a member of a structured field (RFC 9651): of a list, or with a key of a dictionary. It only has what rate limit
// headers use.
type item struct {
	key    string
	kind   kind
	text   string // of a string or a token
	n      int64  // of an integer; a decimal is truncated
	raw    string // as sent, for a number, a date or a string
	params []item // each has a key
}

type kind uint8

const (
	kindOther kind = iota
	kindString
	kindToken
	kindInteger
)

// named reports whether the item names a limit.
func (it item) named() bool {
	return it.key == "" && (it.kind == kindString || it.kind == kindToken)
}

func (it item) count(param string) (int64, bool) {
	for _, p := range it.params {
		if p.key == param && p.kind == kindInteger {
			return max(p.n, 0), true
		}
	}
	return 0, false
}

// wait parses a parameter in any of the forms of a wait.
func (it item) wait(param string, base time.Time) (d time.Duration) {
	for _, p := range it.params {
		if p.key == param {
			d, _ = oneWait(p.raw, time.Second, base)
		}
	}
	return d
}

func (it item) seconds(param string) time.Duration {
	n, _ := it.count(param)
	return scale(float64(n), time.Second)
}

// Bounds of a field. Larger fields are ignored.
const (
	maxField = 8 << 10 // bytes
	maxItems = 32
)

// parseList parses a list or a dictionary. As the RFC requires, a field with any error is ignored completely: nil.
func parseList(s string) []item {
	if len(s) > maxField {
		return nil
	}
	var items []item
	p := &sfParser{rest: strings.Trim(s, " ")}
	for p.rest != "" {
		items = append(items, p.member())
		p.space()
		if p.bad || len(items) > maxItems || p.rest != "" && !p.comma() {
			return nil
		}
	}
	return items
}

// An sfParser consumes its input from the left. After an error, bad is set and rest is empty, so every loop ends.
type sfParser struct {
	rest string
	bad  bool
}

func (p *sfParser) fail() { p.bad, p.rest = true, "" }

func (p *sfParser) peek() byte {
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *sfParser) eat(c byte) bool {
	if p.peek() != c || p.rest == "" {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *sfParser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

// comma consumes a separator. A separator at the end is an error.
func (p *sfParser) comma() bool {
	ok := p.eat(',')
	p.space()
	return ok && p.rest != ""
}

func (p *sfParser) while(ok func(byte) bool) string {
	i := 0
	for i < len(p.rest) && ok(p.rest[i]) {
		i++
	}
	s := p.rest[:i]
	p.rest = p.rest[i:]
	return s
}

func (p *sfParser) member() item {
	it := p.bare()
	if it.kind == kindToken && p.eat('=') {
		key := it.text
		it = p.bare()
		it.key = key
	}
	for !p.bad && p.eat(';') {
		p.space()
		it.params = append(it.params, p.param())
	}
	return it
}

func (p *sfParser) param() item {
	key := p.while(isKey)
	if key == "" || isDigit(key[0]) {
		p.fail()
		return item{}
	}
	var it item // without a value it is true, which is not needed
	if p.eat('=') {
		it = p.bare()
	}
	it.key = key
	return it
}

// bare parses a value, and keeps its text.
func (p *sfParser) bare() item {
	before := p.rest
	it := p.value()
	if !p.bad && (it.kind != kindOther || before[0] == '@') {
		it.raw = strings.TrimPrefix(before[:len(before)-len(p.rest)], "@")
	}
	return it
}

func (p *sfParser) value() item {
	switch c := p.peek(); {
	case c == '"':
		return p.str()
	case c == '-', isDigit(c):
		return p.num()
	case c == '*', isAlpha(c):
		return item{kind: kindToken, text: p.while(isToken)}
	case c == ':': // bytes
		p.eat(':')
		p.while(func(c byte) bool { return isAlpha(c) || isDigit(c) || strings.IndexByte("+/=", c) >= 0 })
		return p.closed(':')
	case c == '?': // true or false
		p.eat('?')
		if !p.eat('0') && !p.eat('1') {
			p.fail()
		}
		return item{}
	case c == '@': // a date
		p.eat('@')
		p.num()
		return item{}
	}
	p.fail()
	return item{}
}

func (p *sfParser) closed(c byte) item {
	if !p.eat(c) {
		p.fail()
	}
	return item{}
}

func (p *sfParser) str() item {
	var b strings.Builder
	p.eat('"')
	for p.rest != "" {
		c := p.rest[0]
		p.rest = p.rest[1:]
		switch {
		case c == '"':
			return item{kind: kindString, text: b.String()}
		case c == '\\' && (p.peek() == '"' || p.peek() == '\\'):
			b.WriteByte(p.rest[0])
			p.rest = p.rest[1:]
		case c == '\\', c < ' ', c > '~':
			p.fail()
		default:
			b.WriteByte(c)
		}
	}
	p.fail()
	return item{}
}

// num parses up to 15 digits, or 12 with up to 3 after the decimal point.
func (p *sfParser) num() item {
	negative := p.eat('-')
	whole := p.while(isDigit)
	most := 15
	if p.eat('.') {
		most = 12
		if f := p.while(isDigit); f == "" || len(f) > 3 {
			p.fail()
		}
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || len(whole) > most {
		p.fail()
		return item{}
	}
	if negative {
		n = -n
	}
	return item{kind: kindInteger, n: n}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isAlpha(c byte) bool { return isLower(c) || c >= 'A' && c <= 'Z' }
func isKey(c byte) bool   { return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0 }
func isToken(c byte) bool {
	return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}
