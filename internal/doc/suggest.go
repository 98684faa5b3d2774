package doc

import (
	"maps"
	"slices"
	"strings"
)

// few is the maximum number of names in a hint.
const few = 20

// Suggest returns a hint for an unknown name: the most similar known name, or all names if they are few.
func Suggest(name string, known []string) string {
	if best := Likely(name, known); best != "" {
		return "did you mean " + best + "?"
	}
	if len(known) == 0 || len(known) > few {
		return ""
	}
	return "want one of " + strings.Join(known, ", ")
}

// Likely returns the known name that is most similar to a name, or "" if more than one of three letters differs. Case does not
// matter.
func Likely(name string, known []string) string {
	return Closest(strings.ToLower(name), known, min(len(name)/3, 3)+1)
}

// Closest returns the word with the fewest edits from word, or "" if none has fewer than most.
func Closest(word string, words []string, most int) string {
	best, letters := "", []rune(word)
	for _, w := range words {
		if n := slips(letters, []rune(w), most); n < most {
			best, most = w, n
		}
	}
	return best
}

// slips returns the number of letters to add, remove, replace, or swap with a neighbor to change a into b. Results of most or
// more mean too many.
func slips(a, b []rune, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	var rows [3][]int // the row before the previous one, the previous one, and the current one
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
