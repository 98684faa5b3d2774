package main

import (
	"fmt"
	"go/types"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// An arrow leads from a box to another one, of which something is named in it.
type arrow struct{ from, to string }

// arrows are those between the boxes of the tree, which are its folders at the top and the files of the root; or, of
// another package, its files.
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

// box is where a file stands: in a folder at the top, or by itself.
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

// back is how many arrows run back up where the boxes stand in the best order that is found: from an order by what each
// names and is named by (Eades, Lin, Smyth: A fast and effective heuristic for the feedback arc set problem, 1993), each box
// is moved to where fewest run up, until no move helps.
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

// settle moves a box to the place where fewest arrows run up, and reports whether it was at another one.
func settle(order []string, b string, all map[arrow]bool) bool {
	was := slices.Index(order, b)
	rest := slices.Delete(slices.Clone(order), was, was+1)
	cost := 0 // at the top, all that name it run up
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

// eades takes away, one after the other, boxes that name no other, which stand last, those that none names, which stand
// first, and else that which names most more than name it.
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
