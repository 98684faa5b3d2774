package main

import (
	"fmt"
	"os"
	"strings"
)

// kept are the columns of the record after version and clock. Each is a row of weir as a ratio to the reference of its group in
// the same run, with one goroutine and with many.
var kept = []struct{ name, group, row string }{
	{"allow", "Allow", "weir"},
	{"deny", "Deny", "weir"},
	{"breaker", "BreakerSuccess", "weir"},
	{"refused", "Refuse", "weir"},
	{"refused, everything on", "Refuse", "weir+everything"},
	{"decision", "Decision", "weir"},
	{"decision, everything on", "Shipped", "weir"},
	{"Do", "Do", "weir"},
	{"Do, everything on", "Shipped", "weir-do"},
	{"3 limits", "Several", "weir-3"},
	{"10 limits", "Several", "weir-10"},
	{"1,000 keys", "Keys", "weir-1000"},
	{"Transport", "Transport", "weir"},
}

// addTo adds a row to a record, which must exist. Its header defines the columns.
func (r *results) addTo(file, version string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head := recordHead()
	if !strings.Contains(string(b), head) {
		return fmt.Errorf("%s: has no table with the columns\n%s", file, head)
	}
	var row strings.Builder
	line(&row, r.recorded(version)...)
	return os.WriteFile(file, []byte(strings.TrimRight(string(b), "\n")+"\n"+row.String()), 0o644)
}

// recordHead returns the header of the record.
func recordHead() string {
	cells := []string{"version", "clock, ns"}
	for _, k := range kept {
		cells = append(cells, k.name)
	}
	var head strings.Builder
	line(&head, cells...)
	return head.String()
}

// recorded returns the row of a version.
func (r *results) recorded(version string) []string {
	cells := []string{version, figure(r.median(series{"Clock", "ref", "g=1", "ns/op"}))}
	for _, k := range kept {
		crowd := r.crowd(k.group)
		of := func(mode string) float64 {
			return r.median(series{k.group, k.row, mode, "ns/op"}) / r.median(series{k.group, "ref", mode, "ns/op"})
		}
		cell := number("%.2f", of("g=1"))
		if many := number("%.2f", of(crowd)); many != "" {
			cell += ", " + many
		}
		cells = append(cells, cell)
	}
	return cells
}
