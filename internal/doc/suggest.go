package doc

import (
	"maps"
	"slices"
	"strings"
)

// few is how many names a hint lists.
const few = 20

// Suggest is a hint at what a name may have been meant to be: the known name that looks
// like it, or all of them if they are few.
func Suggest(name string, known []string) string {
	if best := Likely(name, known); best != "" {
		return "did you mean " + best + "?"
	}
	if len(known) == 0 || len(known) > few {
		return ""
	}
	return "want one of " + strings.Join(known, ", ")
}

// Likely is the known name that a name was meant to be, "" if that would take a slip in
// more than one of three letters. Capitals do not matter.
func Likely(name string, known []string) string {
	return Closest(strings.ToLower(name), known, min(len(name)/3, 3)+1)
}

// Closest is the word that takes the fewest slips to become this one, "" if that
// takes as many as most.
func Closest(word string, words []string, most int) string {
	best, letters := "", []rune(word)
	for _, w := range words {
		if n := slips(letters, []rune(w), most); n < most {
			best, most = w, n
		}
	}
	return best
}

// slips is how many letters must be added, dropped, changed or swapped with
// their neighbour to make b of a; any number from most up stands for too many.
func slips(a, b []rune, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	var rows [3][]int // the row before the last, the last, this one
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[2] {
		rows[2][j] = j
	}
	for i := 1; i <= len(a); i++ {
		rows[0], rows[1], rows[2] = rows[1], rows[2], rows[0]
		rows[2][0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			rows[2][j] = step(rows, a, b, i, j)
			least = min(least, rows[2][j])
		}
		if least >= most {
			return most
		}
	}
	return min(most, rows[2][len(b)])
}

func step(rows [3][]int, a, b []rune, i, j int) int {
	change := rows[1][j-1]
	if a[i-1] != b[j-1] {
		change++
	}
	n := min(change, rows[1][j]+1, rows[2][j-1]+1)
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		n = min(n, rows[0][j-2]+1)
	}
	return n
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
