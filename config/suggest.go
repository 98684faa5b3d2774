package config

import "strings"

// few is how many names a hint lists.
const few = 16

// suggest is a hint at what may have been meant.
func suggest(name string, known []string) string {
	if best := closest(name, known); best != "" {
		return "did you mean " + best + "?"
	}
	if len(known) == 0 || len(known) > few {
		return ""
	}
	return "want one of " + strings.Join(known, ", ")
}

// closest is the known name that takes the fewest slips to become the name, ""
// if that is more than one in three letters.
func closest(name string, known []string) string {
	best, least := "", min(len(name)/3, 3)+1
	for _, k := range known {
		if n := slips(strings.ToLower(name), k, least); n < least {
			best, least = k, n
		}
	}
	return best
}

// slips is how many letters must be added, dropped, changed or swapped with
// their neighbour to make b of a; any number from most up stands for too many.
func slips(a, b string, most int) int {
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
		for j := 1; j <= len(b); j++ {
			change := rows[1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			n := min(change, rows[1][j]+1, rows[2][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[0][j-2]+1)
			}
			rows[2][j] = n
		}
	}
	return rows[2][len(b)]
}
