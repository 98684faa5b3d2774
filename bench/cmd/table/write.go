package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

func write(out io.Writer, r *results) {
	for _, g := range r.groups {
		fmt.Fprintf(out, "### %s\n\n", g)
		switch g {
		case "Admission":
			printAdmission(out, r)
		case "Waiting":
			printWaiting(out, r)
		default:
			printGroup(out, r, g)
		}
	}
	printTargets(out, r)
	printQuiet(out, r)
}

// printGroup prints nanoseconds per operation, and the ratios to the reference and to weir.
func printGroup(out io.Writer, r *results, group string) {
	crowd := r.crowd(group)
	n := strings.TrimPrefix(crowd, "g=")
	header(out, "what", "1 goroutine", n+" goroutines", "x ref, 1", "x ref, "+n, "x weir, 1", "x weir, "+n, "B/op", "allocs/op", "spread")
	for _, row := range r.rows[group] {
		at := func(row, mode, unit string) float64 { return r.median(series{group, row, mode, unit}) }
		one, many := at(row, "g=1", "ns/op"), at(row, crowd, "ns/op")
		spread := func(mode string) float64 { return r.spread(series{group, row, mode, "ns/op"}) }
		line(out, row, figure(one), figure(many),
			ratio(one/at("ref", "g=1", "ns/op")), ratio(many/at("ref", crowd, "ns/op")),
			ratio(one/at("weir", "g=1", "ns/op")), ratio(many/at("weir", crowd, "ns/op")),
			number("%.0f", at(row, "g=1", "B/op")), number("%.0f", at(row, "g=1", "allocs/op")),
			percent(larger(spread("g=1"), spread(crowd))))
	}
	fmt.Fprintln(out)
}

// crowd returns the mode of many goroutines in which a group was measured.
func (r *results) crowd(group string) string {
	for s := range r.figures {
		if s.group == group && s.mode != "g=1" {
			return s.mode
		}
	}
	return "g=64"
}

// printAdmission prints the admitted units as a share of burst + rate * time.
func printAdmission(out io.Writer, r *results) {
	header(out, "what", "admitted / budget")
	for _, row := range r.rows["Admission"] {
		share := r.median(series{"Admission", row, "g=64", "admitted/budget"})
		line(out, row, number("%.4f", share))
	}
	fmt.Fprintln(out)
}

// printWaiting prints the share of a limit that waiting callers use, and the CPU time of a grant.
func printWaiting(out io.Writer, r *results) {
	header(out, "what", "waiting", "used of the limit", "CPU of a grant, us")
	for _, row := range r.rows["Waiting"] {
		for _, n := range waiters {
			s := series{"Waiting", row, fmt.Sprintf("g=%d", n), "used"}
			used := r.median(s)
			s.unit = "us/grant"
			line(out, row, fmt.Sprint(n), number("%.4f", used), figure(r.median(s)))
		}
	}
	fmt.Fprintln(out)
}

// waiters are the numbers of waiting callers.
var waiters = []int{64, 1000, 10_000, 100_000}

func printTargets(out io.Writer, r *results) {
	fmt.Fprint(out, "### Targets\n\n")
	header(out, "target", "measured", "verdict")
	for _, t := range r.targets() {
		v := t.measure(r)
		line(out, t.String(), number("%.4g", v), t.verdict(v))
	}
	fmt.Fprintln(out)
}

// printQuiet warns if other work used the second core during the run. Clock reads share nothing, so two cores are nearly twice
// as fast.
func printQuiet(out io.Writer, r *results) {
	scaled := r.median(series{"Clock", "ref", "g=1", "ns/op"}) / r.median(series{"Clock", "ref", "g=64", "ns/op"})
	if scaled < 1.5 {
		fmt.Fprintf(out, "The machine was not quiet: two cores read the clock %.1f times as fast as one.\n"+
			"The columns for 64 goroutines do not count; measure again.\n", scaled)
	}
}

func header(out io.Writer, cells ...string) {
	line(out, cells...)
	line(out, append([]string{"---"}, strings.Split(strings.Repeat("---: ", len(cells)-1), " ")[:len(cells)-1]...)...)
}

func line(out io.Writer, cells ...string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

// figure formats about three digits.
func figure(v float64) string {
	switch {
	case v < 10:
		return number("%.2f", v)
	case v < 100:
		return number("%.1f", v)
	}
	return number("%.0f", v)
}

func ratio(v float64) string { return number("%.1f", v) }

func percent(v float64) string { return number("%.0f%%", 100*v) }

// number formats a number, or an empty cell for NaN.
func number(format string, v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return fmt.Sprintf(format, v)
}

func larger(a, b float64) float64 {
	if math.IsNaN(b) || a > b {
		return a
	}
	return b
}
