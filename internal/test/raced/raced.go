// Package raced tells tests whether the race detector looks on, under which they take ten
// times as long and more. It finds what goroutines do to each other the first times they
// meet: a thousand rounds of the same show it no more than a few dozen.
package raced

// Of is how many times something is done, or how many rows a table has: usual, or few with the race detector.
func Of(usual, few int) int {
	if Detector {
		return few
	}
	return usual
}
