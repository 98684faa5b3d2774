package main

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/sidecar/board"
)

// A top is the state of weir top.
type top struct {
	view    *board.View // nil before the first response
	err     error       // error of the last request
	filter  string
	typing  bool   // the user types a filter
	typed   string // text typed so far
	sort    string
	skip    int // number of upstreams scrolled out at the top
	plainly bool
	width   int
	height  int
}

// A sorting is an order of upstreams.
type sorting struct {
	name string
	less func(a, b *board.Row) bool // nil keeps weir's order, the worst first
}

var sorts = []sorting{
	{"worst", nil},
	{"name", func(a, b *board.Row) bool { return a.Name < b.Name }},
	{"rate", func(a, b *board.Row) bool { return a.Allowed+a.Waited > b.Allowed+b.Waited }},
	{"refused", func(a, b *board.Row) bool { return a.Refused > b.Refused }},
	{"left", func(a, b *board.Row) bool { return b.Least < 0 && a.Least >= 0 || a.Least >= 0 && a.Least < b.Least }},
	{"p99", func(a, b *board.Row) bool { return a.P99MS > b.P99MS }},
}

func sortNames() (all []string) {
	for _, s := range sorts {
		all = append(all, s.name)
	}
	return all
}

// sortsBy reports whether an order with the name exists.
func (t *top) sortsBy(name string) bool {
	return slices.ContainsFunc(sorts, func(s sorting) bool { return s.name == name })
}

// rows returns the sorted upstreams.
func (t *top) rows() []*board.Row {
	all := slices.Clone(t.view.Upstreams)
	for _, s := range sorts {
		if s.name == t.sort && s.less != nil {
			slices.SortStableFunc(all, func(a, b *board.Row) int {
				switch {
				case s.less(a, b):
					return -1
				case s.less(b, a):
					return 1
				}
				return 0
			})
		}
	}
	return all
}

// take stores a response. After an error the earlier view remains.
func (t *top) take(s seen) {
	t.err = s.err
	if s.err == nil {
		t.view = s.View
	}
}

// Names of keys that are not a single letter.
const (
	keyUp    = "up"
	keyDown  = "down"
	keyPgUp  = "page up"
	keyPgDn  = "page down"
	keyEnter = "enter"
	keyEsc   = "escape"
	keyBack  = "backspace"
)

var sequences = []struct{ typed, key string }{
	{"\x1b[A", keyUp}, {"\x1bOA", keyUp}, {"\x1b[B", keyDown}, {"\x1bOB", keyDown}, {"\x1b[5~", keyPgUp}, {"\x1b[6~", keyPgDn},
	{"\r", keyEnter}, {"\n", keyEnter}, {"\x7f", keyBack}, {"\b", keyBack}, {"\x03", "ctrl-c"}, {"\x1b", keyEsc},
}

// keysOf returns the pressed keys. It ignores unknown sequences.
func keysOf(typed string) (all []string) {
next:
	for typed != "" {
		for _, s := range sequences {
			rest, is := strings.CutPrefix(typed, s.typed)
			if !is {
				continue
			}
			if s.key == keyEsc && len(rest) > 1 && (rest[0] == '[' || rest[0] == 'O') { // skip an unknown sequence up to its last letter
				end := strings.IndexFunc(rest[1:], func(r rune) bool { return r >= '@' && r <= '~' })
				typed = rest[min(len(rest), 2+max(0, end)):]
				continue next
			}
			all, typed = append(all, s.key), rest
			continue next
		}
		r, n := utf8.DecodeRuneInString(typed)
		if unicode.IsPrint(r) && r != utf8.RuneError {
			all = append(all, string(r))
		}
		typed = typed[n:]
	}
	return all
}

// press handles a key. It reports whether the user quits.
func (t *top) press(key string) (end bool) {
	if key == "ctrl-c" {
		return true
	}
	if t.typing {
		t.typeFilter(key)
		return false
	}
	page := max(1, t.height/2)
	switch key {
	case "q":
		return true
	case "/":
		t.typing, t.typed = true, t.filter
	case keyEsc:
		t.filter = ""
	case "s":
		i := slices.IndexFunc(sorts, func(s sorting) bool { return s.name == t.sort })
		t.sort, t.skip = sorts[(i+1)%len(sorts)].name, 0
	case "j", keyDown:
		t.skip++
	case "k", keyUp:
		t.skip--
	case keyPgDn:
		t.skip += page
	case keyPgUp:
		t.skip -= page
	}
	t.skip = max(0, t.skip)
	return false
}

// typeFilter handles a key while the user types a filter.
func (t *top) typeFilter(key string) {
	switch key {
	case keyEnter:
		t.filter, t.typing, t.skip = t.typed, false, 0
	case keyEsc:
		t.typing = false
	case keyBack:
		_, n := utf8.DecodeLastRuneInString(t.typed)
		t.typed = t.typed[:len(t.typed)-n]
	default:
		if utf8.RuneCountInString(key) == 1 && len(t.typed) < 100 {
			t.typed += key
		}
	}
}
