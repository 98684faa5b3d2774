package main

import (
	"fmt"
	"go/types"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// An arrow leads from a box to another box that it references.
type arrow struct{ from, to string }

// arrows returns the references between boxes. The boxes of the tree are the top-level folders and the root's files.
// The boxes of another package are its files.
func arrows(rooms []room, of string) map[arrow]bool {
	all := make(map[arrow]bool)
	for _, r := range plain(rooms) {
		if of != "." && r.path != of {
			continue
		}
		for id, o := range r.TypesInfo.Uses {
			if o.Pkg() == nil || !o.Pos().IsValid() || !strings.HasPrefix(o.Pkg().Path()+"/", module+"/") {
				continue
			}
			if f, ok := o.(*types.Func); ok {
				o = f.Origin()
			}
			from, to := box(r.path, of, r.Fset.Position(id.Pos()).Filename), box(within(o.Pkg().Path()), of, r.Fset.Position(o.Pos()).Filename)
			if from != to && from != "" && to != "" {
				all[arrow{from, to}] = true
			}
		}
	}
	return all
}

// box returns the box of a file: its top-level folder, or the file itself.
func box(path, of, file string) string {
	if path == of {
		return filepath.Base(file)
	}
	if of != "." {
		return ""
	}
	top, _, _ := strings.Cut(path, "/")
	return top
}

// back returns how many arrows run back up in the best order found. It starts with an order by outgoing and incoming
// references (Eades, Lin, Smyth: A fast and effective heuristic for the feedback arc set problem, 1993). Then it
// moves each box to the place with the fewest upward arrows, until no move helps.
func back(all map[arrow]bool) int {
	order := eades(all)
	for better := true; better; {
		better = false
		for _, b := range slices.Clone(order) {
			better = settle(order, b, all) || better
		}
	}
	at := make(map[string]int)
	for i, b := range order {
		at[b] = i
	}
	n := 0
	for a := range all {
		if at[a.to] < at[a.from] {
			n++
		}
	}
	return n
}

// settle moves a box to the place with the fewest upward arrows, and reports whether it has moved.
func settle(order []string, b string, all map[arrow]bool) bool {
	was := slices.Index(order, b)
	rest := slices.Delete(slices.Clone(order), was, was+1)
	cost := 0 // at the top, all references to it run up
	for _, o := range rest {
		cost += bit(all[arrow{o, b}])
	}
	costs := []int{cost}
	for _, o := range rest {
		cost += bit(all[arrow{b, o}]) - bit(all[arrow{o, b}])
		costs = append(costs, cost)
	}
	best := slices.Index(costs, slices.Min(costs))
	if costs[best] == costs[was] {
		return false
	}
	copy(order, slices.Insert(rest, best, b))
	return true
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// eades removes boxes one after the other: sinks, which go last, sources, which go first, and otherwise the box with
// the largest excess of outgoing references.
func eades(all map[arrow]bool) []string {
	out, in := make(map[string]int), make(map[string]int)
	left := make(map[string]bool)
	for a := range all {
		left[a.from], left[a.to] = true, true
		out[a.from]++
		in[a.to]++
	}
	var first, last []string
	for len(left) > 0 {
		var names []string
		for b := range left {
			names = append(names, b)
		}
		slices.Sort(names)
		pick := names[0]
		for _, b := range names {
			if out[b] == 0 {
				pick = b
				break
			}
			if out[b]-in[b] > out[pick]-in[pick] {
				pick = b
			}
		}
		if out[pick] == 0 {
			last = append(last, pick)
		} else {
			first = append(first, pick)
		}
		delete(left, pick)
		for b := range left {
			in[b] -= bit(all[arrow{pick, b}])
			out[b] -= bit(all[arrow{b, pick}])
		}
	}
	slices.Reverse(last)
	return append(first, last...)
}

func between(w io.Writer, rooms []room) {
	fmt.Fprintln(w)
	for _, c := range []struct{ of, what string }{{".", "the folders at the top and the files of the root"}, {"limit", "the files of limit"}} {
		all := arrows(rooms, c.of)
		fmt.Fprintf(w, "references between %s: %d, of which %d run back up\n", c.what, len(all), back(all))
	}
}
