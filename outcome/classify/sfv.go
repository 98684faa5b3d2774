package classify

import (
	"strconv"
	"strings"
	"time"
)

// An item is a member of a structured field (RFC 9651): of a list, or with a
// key of a dictionary. Only what rate limit headers use is kept of it.
type item struct {
	key    string
	kind   kind
	text   string // of a string or a token
	n      int64  // of an integer; a decimal is cut to whole
	raw    string // what was sent, of a number, a date or a string
	params []item // each with key
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

// wait reads a parameter in any of the forms of a wait.
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

// A field beyond these bounds is no honest one, and is ignored.
const (
	maxField = 8 << 10 // bytes
	maxItems = 32
)

// parseList parses a list or a dictionary. As the RFC asks, a field with a
// mistake anywhere is ignored as a whole: nil.
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

// An sfParser eats its input from the left. After a mistake bad is set and
// rest empty, so every loop ends.
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

// comma eats a separator; nothing after it is a mistake.
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
	var it item // without a value it is true, which nobody asks for
	if p.eat('=') {
		it = p.bare()
	}
	it.key = key
	return it
}

// bare reads a value, and keeps what was sent of it.
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

// num reads up to 15 digits, or 12 and up to 3 behind the point.
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
