package raced

import "testing"

func TestLessIsDoneWithTheDetectorOnly(t *testing.T) {
	want := 1000
	if Detector {
		want = 20
	}
	if got := Of(1000, 20); got != want {
		t.Errorf("done %d times, want %d", got, want)
	}
}
