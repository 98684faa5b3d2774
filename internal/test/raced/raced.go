// Package raced tells tests whether the race detector is on. It makes tests at least ten times as slow. It finds races in the
// first interactions of goroutines, so that a thousand rounds find no more than a few dozen.
package raced

// Of returns a number of repetitions or rows: usual, or few with the race detector.
func Of(usual, few int) int {
	if Detector {
		return few
	}
	return usual
}
