package chat

import (
	"fmt"
	"strings"
	"unicode"
)

// A tier of the output. Its number in the cascade identifies it without colors.
type tier struct {
	name, colour, what string
}

var tiers = []tier{
	{"primary", "42", primaryModel + ", the requested model"},
	{"secondary", "44", "another model of another provider"},
	{"cached", "46", "an earlier answer"},
	{"static", "43", "a prepared answer of the shop"},
	{"message", "45", "an apology"},
}

const (
	lineWidth = 80
	ribbon    = 60 // answers per line
	barWidth  = 40
	missed    = "!"
)

// A printer prints the run. It overwrites nothing, so that the output is also readable in a file.
type printer struct {
	Config
	at int // number of answers on the line
}

func (p *printer) printf(format string, args ...any) {
	if !p.JSON {
		_, _ = fmt.Fprintf(p.Out, format, args...)
	}
}

// paint colors a text with SGR codes.
func (p *printer) paint(code, text string) string {
	if !p.Colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// cell returns the digit of a tier.
func (p *printer) cell(name string) string {
	for i, t := range tiers {
		if t.name == name {
			return p.paint("30;"+t.colour, fmt.Sprint(i+1))
		}
	}
	return p.paint("97;41", missed)
}

func (p *printer) title() {
	p.printf("%s\n\n", p.paint("1", "A shop's assistant that always answers"))
	p.printf("%d customers of two shops ask %d questions a second, in English and Japanese.\n", len(customers), p.Rate)
	p.printf("Each digit is an answer, and shows which tier of the cascade gave it:\n\n")
	for _, t := range tiers {
		p.printf("  %s  %-10s %s\n", p.cell(t.name), t.name, t.what)
	}
}

func (p *printer) begin(number string, a play) {
	p.at = 0
	p.printf("\n%s  %s\n\n", p.paint("1", fmt.Sprintf("%s  %s.", number, a.title)), a.tells)
}

// mark prints one answered question.
func (p *printer) mark(r reply) {
	switch {
	case p.at == 0:
		p.printf("  ")
	case p.at%ribbon == 0:
		p.printf("\n  ")
	}
	p.at++
	if r.Err != nil {
		p.printf("%s", p.cell(""))
		return
	}
	p.printf("%s", p.cell(r.Tier))
}

// end prints the result of an act.
func (p *printer) end(a Act) {
	p.printf("\n\n")
	for _, t := range tiers {
		if n := a.Tiers[t.name]; n > 0 {
			full := max(1, (n*barWidth+a.Calls/2)/a.Calls)
			p.printf("  %s  %-10s %s%s %5d\n", p.cell(t.name), t.name,
				p.paint("3"+t.colour[1:], strings.Repeat("█", full)), p.paint("2", strings.Repeat("·", barWidth-full)), n)
		}
	}
	p.printf("\n  calls      %d, %d answered in %.0f s; first words p50 %s, p99 %s\n", a.Calls, a.Answered, a.Seconds, took(a.P50), took(a.P99))
	p.printf("  primary    %s\n", a.Primary)
	p.printf("  elsewhere  %s\n", a.Elsewhere)
	p.printf("  tokens     %s in, %s out; cost %s\n", thousands(a.Primary.Input+a.Elsewhere.Input), thousands(a.Primary.Output+a.Elsewhere.Output), dollars(a.Cost))
	for _, err := range a.wrongs {
		p.printf("  %s %.120s\n", p.paint("31", "not answered:"), err.Error())
	}
	p.example(a.Example)
}

func (p *printer) example(e *Example) {
	if e == nil {
		return
	}
	p.printf("\n  %s asks: %s\n", e.Customer, clip(e.Question, lineWidth-10-len(e.Customer)))
	p.printf("%s\n", p.paint("2", fmt.Sprintf("    HTTP/1.1 %d OK", e.Status)))
	for _, name := range shown {
		if v, ok := e.Header[name]; ok {
			p.printf("%s %s\n", p.paint("2", "    "+name+":"), v)
		}
	}
	p.printf("    %s\n", clip(e.Answer, lineWidth-4))
}

// String describes the attempts at a provider in one line.
func (a Attempts) String() string {
	if a.All == 0 {
		return "received no attempts"
	}
	return fmt.Sprintf("%s, %d refused, %d failed", count(a.All, "attempt"), a.Refused, a.Failed)
}

// summary prints the acts side by side, and conclusions.
func (p *printer) summary(all []Act) {
	p.printf("\n%s\n", strings.Repeat("─", lineWidth))
	p.row("", all, func(a Act) string { return a.Name })
	p.row("calls", all, func(a Act) string { return fmt.Sprint(a.Calls) })
	p.row("answered", all, func(a Act) string { return fmt.Sprint(a.Answered) })
	for _, t := range tiers {
		p.row("  "+t.name, all, func(a Act) string { return dash(a.Tiers[t.name]) })
	}
	p.row("first words p50", all, func(a Act) string { return took(a.P50) })
	p.row("first words p99", all, func(a Act) string { return took(a.P99) })
	p.row("attempts upstream", all, func(a Act) string { return fmt.Sprint(a.Primary.All + a.Elsewhere.All) })
	p.row("  beyond a limit", all, func(a Act) string { return dash(a.Primary.Refused + a.Elsewhere.Refused) })
	p.row("  failed", all, func(a Act) string { return dash(a.Primary.Failed + a.Elsewhere.Failed) })
	p.row("cost", all, func(a Act) string { return dollars(a.Cost) })
	p.printf("\n%s", conclusion(all))
}

func (p *printer) row(name string, all []Act, cell func(Act) string) {
	p.printf("%-20s", name)
	for _, a := range all {
		p.printf("%12s", cell(a))
	}
	p.printf("\n")
}

func conclusion(all []Act) string {
	var sum Act
	var b strings.Builder
	for _, a := range all {
		sum.Calls += a.Calls
		sum.Answered += a.Answered
		sum.Primary.Refused += a.Primary.Refused + a.Elsewhere.Refused
		sum.Primary.All += a.Primary.All + a.Elsewhere.All
	}
	if sum.Answered == sum.Calls {
		fmt.Fprintf(&b, "All %d calls were answered with 200, in the format that the SDK understands.\n", sum.Calls)
	} else {
		fmt.Fprintf(&b, "%d of %d calls were not answered.\n", sum.Calls-sum.Answered, sum.Calls)
	}
	for _, a := range all {
		if a.Name == "dark" {
			fmt.Fprintf(&b, "With everything down, %d calls caused %d attempts upstream.\n", a.Calls, a.Primary.All+a.Elsewhere.All)
		}
	}
	switch n := sum.Primary.Refused; n {
	case 0:
		fmt.Fprintf(&b, "None of the %d attempts exceeded a provider's limit.\n", sum.Primary.All)
	default:
		fmt.Fprintf(&b, "%d of %d attempts exceeded a provider's limit.\n", n, sum.Primary.All)
	}
	return b.String()
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// took formats a time in milliseconds.
func took(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.2f s", ms/1000)
}

func dollars(d float64) string { return fmt.Sprintf("$%.4f", d) }

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// clip shortens a text to a number of terminal columns.
func clip(text string, columns int) string {
	text = strings.Join(strings.Fields(text), " ")
	if width(text) <= columns {
		return text
	}
	used := 0
	for i, r := range text {
		if used += width(string(r)); used > columns-3 {
			return text[:i] + "..."
		}
	}
	return text
}

// width returns the number of columns of a text. Chinese and Japanese characters and punctuation take two.
func width(text string) (n int) {
	for _, r := range text {
		n++
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff01 && r <= 0xff60 {
			n++
		}
	}
	return n
}
