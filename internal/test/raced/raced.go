// Package raced tells tests whether the race detector is on. It makes tests at least ten times as slow. It finds races in the
// first interactions of goroutines, so that a thousand rounds find no more than a few dozen.
package raced

import "testing"

// Of returns a number of repetitions or rows: usual, or few with the race detector.
func Of(usual, few int) int {
	if Detector {
		return few
	}
	return usual
}

// Skip skips a test with the race detector. why says what the detector cannot find there, or why it takes too long.
func Skip(t testing.TB, why string) {
	t.Helper()
	if Detector {
		t.Skip("not with the race detector: " + why)
	}
}
