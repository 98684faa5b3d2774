package fleet

import (
	"testing"
	"time"
)

// A shorter silence applies when the store has responded to it. Until then, the store counts the part as in for
// the longer one.
func TestAShorterSilenceHoldsWhenItIsAnswered(t *testing.T) {
	s := standing{rules: parting{silence: time.Second, life: time.Minute}, silence: 5 * time.Second}
	answer := func(now time.Duration, no int64) {
		b := s.beat(now, 0, 0, 0)
		if !s.hears(now, now, b, &Standing{No: no, Part: Whole / 2}) {
			t.Fatalf("the answer %d is not heard", no)
		}
	}
	answer(time.Second, 1)
	s.judge(0, 0, 0, 1)
	if s.silence != time.Second {
		t.Fatalf("it asks for a silence of %v", s.silence)
	}
	if m, _ := s.mode(5 * time.Second); m != asking {
		t.Errorf("4s after the answer it is %v", m)
	}
	answer(5*time.Second, 2)
	if m, _ := s.mode(6500 * time.Millisecond); m != parted {
		t.Errorf("1.5s after a shorter silence was answered it is %v", m)
	}
}

// The mode by the time since the last response, and by the configuration.
func TestWhatAProcessGoesOnWith(t *testing.T) {
	for _, c := range []struct {
		name    string
		without Without
		met     bool
		part    int64
		silent  time.Duration
		want    mode
		of      int64
	}{
		{"new", Without{}, false, 0, time.Hour, waiting, 0},
		{"new, refuse", Without{Refuse: true}, false, 0, time.Hour, waiting, 0},
		{"new, a share, at first", Without{Share: 0.1}, false, 0, time.Second / 2, waiting, 0},
		{"new, a share", Without{Share: 0.1}, false, 0, 2 * time.Second, sharing, Whole / 10},
		{"heard", Without{}, true, Whole / 4, time.Second, asking, 0},
		{"cut off", Without{}, true, Whole / 4, 2 * time.Second, parted, Whole / 4},
		{"cut off without a part", Without{}, true, 0, 2 * time.Second, waiting, 0},
		{"out", Without{}, true, Whole / 4, 2 * time.Minute, past, Whole / 4},
		{"out, refuse", Without{Refuse: true}, true, Whole / 4, 2 * time.Minute, refusing, 0},
		{"out, a share", Without{Share: 0.1}, true, Whole / 4, 2 * time.Minute, sharing, Whole / 10},
	} {
		s := standing{rules: parting{silence: time.Second, life: time.Minute, without: c.without}, silence: time.Second}
		if c.met {
			s.hears(0, 0, s.beat(0, 0, 0, 0), &Standing{No: 1, Part: c.part})
		}
		if m, part := s.mode(c.silent); m != c.want || part != c.of {
			t.Errorf("%s: %v of %d, want %v of %d", c.name, m, part, c.want, c.of)
		}
	}
}
