package weircw

import (
	"fmt"
	"strconv"
	"strings"
)

// A reader reads the plain part of YAML that templates here are written in: mappings and
// sequences as blocks, plain and single-quoted scalars, and text folded with ">-". It
// refuses everything else (tags, anchors, braces, tabs), so that what it takes means the
// same to every reader of YAML.
type reader struct {
	lines []yamlLine
	next  int
}

type yamlLine struct {
	n, indent int
	text      string
}

func readYAML(s string) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("yaml: %v", r)
		}
	}()
	r := new(reader)
	for n, line := range strings.Split(s, "\n") {
		text := strings.TrimLeft(line, " ")
		if text == "" || text[0] == '#' {
			continue
		}
		if strings.ContainsAny(line, "\t\r") {
			panic(fmt.Sprintf("line %d: has a tab", n+1))
		}
		r.lines = append(r.lines, yamlLine{n + 1, len(line) - len(text), strings.TrimRight(text, " ")})
	}
	v = r.block(0)
	if r.next < len(r.lines) {
		panic(fmt.Sprintf("line %d: is indented differently", r.lines[r.next].n))
	}
	return v, nil
}

// more is the next line, if it is indented so far.
func (r *reader) more(indent int) (*yamlLine, bool) {
	if r.next == len(r.lines) || r.lines[r.next].indent != indent {
		return nil, false
	}
	return &r.lines[r.next], true
}

func (r *reader) block(indent int) any {
	l, ok := r.more(indent)
	if !ok {
		panic(fmt.Sprintf("line %d: nothing is indented by %d after it", r.lines[r.next-1].n, indent))
	}
	if strings.HasPrefix(l.text, "- ") {
		return r.sequence(indent)
	}
	if !isMember(l.text) {
		r.next++
		return scalar(l, l.text)
	}
	return r.mapping(indent)
}

func isMember(text string) bool {
	return text[0] != '\'' && (strings.HasSuffix(text, ":") || strings.Contains(text, ": "))
}

// sequence reads items; what stands behind a dash is a block that begins there.
func (r *reader) sequence(indent int) (all []any) {
	for {
		l, ok := r.more(indent)
		if !ok || !strings.HasPrefix(l.text, "- ") {
			return all
		}
		rest := strings.TrimLeft(l.text[2:], " ")
		l.indent, l.text = indent+len(l.text)-len(rest), rest
		all = append(all, r.block(l.indent))
	}
}

func (r *reader) mapping(indent int) map[string]any {
	m := make(map[string]any)
	for {
		l, ok := r.more(indent)
		if !ok {
			return m
		}
		i := strings.Index(l.text+" ", ": ")
		if i <= 0 || l.text[0] == '-' {
			panic(fmt.Sprintf("line %d: no key", l.n))
		}
		key := l.text[:i]
		if _, twice := m[key]; twice {
			panic(fmt.Sprintf("line %d: %s stands twice", l.n, key))
		}
		r.next++
		m[key] = r.value(l, strings.TrimSpace(l.text[i+1:]))
	}
}

func (r *reader) value(l *yamlLine, text string) any {
	switch text {
	case "":
		if r.next == len(r.lines) || r.lines[r.next].indent <= l.indent {
			panic(fmt.Sprintf("line %d: no value", l.n))
		}
		return r.block(r.lines[r.next].indent)
	case ">-":
		return r.folded(l.indent)
	}
	return scalar(l, text)
}

func (r *reader) folded(indent int) string {
	var parts []string
	for r.next < len(r.lines) && r.lines[r.next].indent > indent {
		parts = append(parts, r.lines[r.next].text)
		r.next++
	}
	return strings.Join(parts, " ")
}

func scalar(l *yamlLine, text string) any {
	if text[0] == '\'' {
		inner := text[1 : len(text)-1]
		if len(text) < 2 || text[len(text)-1] != '\'' || strings.Contains(inner, "'") {
			panic(fmt.Sprintf("line %d: quotes", l.n))
		}
		return inner
	}
	if strings.ContainsAny(text[:1], "!&*{}[]|>%@`\"?,") || strings.Contains(text, " #") || strings.Contains(text, ": ") {
		panic(fmt.Sprintf("line %d: %q is more than plain text", l.n, text))
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	switch strings.ToLower(text) {
	case "true", "false":
		return text[0] == 't' || text[0] == 'T'
	case "null", "~", "yes", "no", "on", "off", "y", "n":
		panic(fmt.Sprintf("line %d: %q means different things to different readers", l.n, text))
	}
	return text
}
