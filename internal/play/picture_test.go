package play

import (
	"strings"
	"testing"
	"time"
)

func TestPictureHasColorsOnlyWhereAsked(t *testing.T) {
	s := &Story{Name: "stall", Length: 30 * time.Second, Machine: Capacity{Does: 60}}
	score := &Score{seconds: make([]Work, 30)}
	score.seconds[3] = Work{Useful: 30, Wasted: 30}
	for i := range score.shares {
		score.shares[i] = make([]float64, 30)
	}
	with, without := s.Picture(score, score, true), s.Picture(score, score, false)
	if !strings.Contains(with, green+"█") || !strings.Contains(with, red+"░") || strings.Contains(without, "\x1b") || !strings.Contains(without, "█") {
		t.Errorf("got %q and %q", with, without)
	}
}

func TestMachineDoesNoWorkInStalls(t *testing.T) {
	m := &Machine{story: &Story{Troubles: []Trouble{{Kind: Stall, From: 10, To: 20}, {Kind: Down, From: 12, To: 15}}}}
	for _, c := range []struct{ begin, takes, want time.Duration }{
		{0, 5, 5}, {0, 10, 10}, {5, 10, 25}, {10, 1, 21}, {15, 5, 25}, {20, 5, 25}, {30, 5, 35},
	} {
		if got := m.pass(c.begin, c.takes); got != c.want {
			t.Errorf("%d of work from %d: done at %d, want %d", c.takes, c.begin, got, c.want)
		}
	}
}
