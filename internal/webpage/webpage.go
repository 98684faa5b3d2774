// Package webpage writes HTML pages: escaped text, tables, plots and the style of weir's status page.
package webpage

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"strings"
)

// Style is the style sheet of all pages, with light and dark colors.
//
//go:embed style.css
var Style string

// Markup is HTML that is not escaped. It contains only constants and numbers.
type Markup string

// A Page is HTML that is being written. It does not use html/template, because the linker could then omit no method
// of any type, and the program would be 50% larger (docs/adr/0012-binary-size.md). The zero Page is empty. A Page is not
// safe for concurrent use.
type Page struct {
	bytes.Buffer
	columns []string // of the table that is being written
}

// Text formats markup. Arguments are escaped unless they are Markup.
func Text(format string, with ...any) Markup {
	for i, v := range with {
		switch v := v.(type) {
		case Markup:
		case string:
			with[i] = html.EscapeString(v)
		case fmt.Stringer:
			with[i] = html.EscapeString(v.String())
		case error:
			with[i] = html.EscapeString(v.Error())
		}
	}
	return Markup(fmt.Sprintf(format, with...))
}

// Breakable returns a path or the name of a field with line break opportunities after its separators.
func Breakable(s string) Markup {
	return Markup(separators.Replace(string(Text("%s", s))))
}

var separators = strings.NewReplacer("/", "/<wbr>", ".", ".<wbr>", "_", "_<wbr>", ":", ":<wbr>", "=", "=<wbr>")

// signs precede the name of a state, so that it does not depend on color. Each is one symbol: the style sheet colors
// the first letter.
var signs = map[string]string{
	"ok": "●", "waiting": "◔", "throttled": "▼", "failing": "✚", "refusing": "▲", "paused": "◆", "half-open": "◐", "open": "■", "trouble": "✖", "closed": "●",
}

// Sign returns the sign of a state.
func Sign(state string) string { return signs[state] }

// Marked returns a text that begins with the sign of a state, in the state's color.
func Marked(state string, words Markup) Markup {
	return Text(`<span class="state %s">%s</span>`, state, words)
}

// Head begins a page. more is what its head contains in addition.
func (p *Page) Head(title string, more Markup) {
	p.Put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
%s
</head>
<body>`, title, more)
}

// Put writes a line of a page. The format is markup. Arguments are escaped unless they are Markup.
func (p *Page) Put(format string, with ...any) {
	p.WriteString(string(Text(format, with...)) + "\n")
}

// Table begins a table. On narrow screens, the columns label the cells, and each row is a block.
func (p *Page) Table(caption string, columns ...string) {
	p.table(`<table class="wide">`, caption, columns)
}

// Figures begins a table of short texts and numbers. With at most 4 columns it remains a table on narrow screens.
func (p *Page) Figures(caption string, columns ...string) {
	if len(columns) > 4 {
		p.Table(caption, columns...)
	} else {
		p.table("<table>", caption, columns)
	}
}

func (p *Page) table(start, caption string, columns []string) {
	p.columns = columns
	p.WriteString(start)
	if caption != "" {
		p.Put("<caption>%s</caption>", caption)
	}
	p.WriteString("<thead><tr>")
	for _, c := range columns {
		p.Put(`<th scope="col">%s`, c)
	}
	p.Put("</thead><tbody>")
}

// Cells writes a row of a table: texts, numbers or markup.
func (p *Page) Cells(all ...any) {
	p.WriteString("<tr>")
	for i, v := range all {
		p.cell(p.columns[i], v)
	}
	p.WriteString("\n")
}

// Row is like Cells, and begins with the header of the row.
func (p *Page) Row(header any, all ...any) {
	p.Put(`<tr><th scope="row">%s`, Text("%v", header))
	for i, v := range all {
		p.cell(p.columns[i+1], v)
	}
	p.WriteString("\n")
}

func (p *Page) cell(column string, v any) {
	if in := Text("%v", v); in != "" {
		fmt.Fprintf(p, `<td data-label="%s">%s`, html.EscapeString(column), in)
	} else {
		p.WriteString("<td>")
	}
}

// EndTable ends a table.
func (p *Page) EndTable() { p.Put("</tbody></table>") }

// Area fills the area below a step line of n steps, if it is not empty. high returns the height of a step. Adjacent steps of
// the same height are one step.
func Area(b *strings.Builder, class Markup, n, bottom int, high func(i int) int) {
	at, begun := 0, 0 // height of the line, and the beginning of its step
	drawn := false
	for x := range n {
		h := high(x)
		if h == at {
			continue
		}
		if !drawn {
			fmt.Fprintf(b, `<path class="%s" d="M%d %d`, class, x, bottom)
			drawn, begun = true, x
		}
		if x > begun {
			fmt.Fprintf(b, "h%d", x-begun)
		}
		fmt.Fprintf(b, "v%d", at-h)
		at, begun = h, x
	}
	if drawn {
		if at > 0 {
			fmt.Fprintf(b, "h%dV%d", n-begun, bottom)
		}
		b.WriteString(`z"/>`)
	}
}
