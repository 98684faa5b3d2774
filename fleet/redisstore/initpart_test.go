package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
)

// Units that a process spent from its part of a cold store remain spent when an operator declares the group new.
func TestInitForgetsNoPartThatWasOut(t *testing.T) {
	for _, init := range []bool{false, true} {
		s, clock, advance := driven(t)
		b := claim(bucketOf("b", 10, time.Second, 1000), 1)
		left(t, s, b)
		a := client("a")
		a.Life, a.Gen, a.Part, a.Until = 3e8, 7, 400_000, clock.Load()+1e8 // it shows a part of 0.4
		for range 10 {
			x := a.beat(t, s)
			if x.Unknown != 600_000 {
				t.Fatalf("%+v", x)
			}
			advance(300 * time.Millisecond)
		}
		// It gets no answer for two minutes. From its Silence on, its part is out. The part saves 4 tokens per
		// second, 400 in all, and the process spends them at the end.
		advance(120 * time.Second)
		left(t, s, b)
		a.beat(t, s) // the answer arrives
		advance(300 * time.Millisecond)
		a.beat(t, s) // the process acknowledges it and takes part again
		left(t, s, b)
		if init {
			if err := s.Init(t.Context(), group); err != nil {
				t.Fatal(err)
			}
		}
		after := left(t, s, b)
		if init && after > 610 {
			t.Errorf("%d of 1000 left, though a part of 0.4 was out a moment ago and may have been spent", after)
		}
	}
}

// A store that has been cold for long enough grants everything to one process. If an operator declares the group
// new after that, the units that the process may have spent since still count.
func TestInitLateForgetsNoPartThatWasOut(t *testing.T) {
	b, r := claim(bucketOf("b", 10, time.Second, 1000), 1), claim(rollingOf("r", 1000, time.Minute), 1)
	begin := func(t *testing.T, step time.Duration) (s *redisstore.Store, a *beater, advance func(time.Duration)) {
		s, _, advance = driven(t)
		a = client("a")
		a.Life = 3e8
		for range int(320 * time.Second / step) {
			a.beat(t, s)
			advance(step)
		}
		if a.Part != fleet.Whole {
			t.Fatalf("a part of %d, want all", a.Part)
		}
		return s, a, advance
	}
	init := func(t *testing.T, s *redisstore.Store) {
		t.Helper()
		if err := s.Init(t.Context(), group); err != nil {
			t.Fatal(err)
		}
	}
	for name, step := range map[string]time.Duration{"it was out and is back": 300 * time.Millisecond, "it was out all the time and is back": time.Second} {
		t.Run(name, func(t *testing.T) {
			s, a, advance := begin(t, step)
			advance(150 * time.Second)
			for range 2 { // the second beat acknowledges the answer to the first
				a.beat(t, s)
			}
			init(t, s)
			if n := left(t, s, b); n > 0 {
				t.Errorf("%d of 1000 left, though as much was saved up in a part that is back now", n)
			}
		})
	}
	t.Run("it has died", func(t *testing.T) {
		s, _, advance := begin(t, 300*time.Millisecond)
		advance(300 * time.Second)
		left(t, s, r)
		init(t, s)
		if n := left(t, s, r); n > 0 {
			t.Errorf("%d of 1000 left, though as much may have been spent in this window by a process that has died", n)
		}
		advance(61 * time.Second)
		if n := left(t, s, r); n != 1000 {
			t.Errorf("%d of 1000 left a window later, want all", n)
		}
	})
}

// The same for a process that returns just before processes no longer need to show parts.
func TestInitLateForgetsNoPartThatWasShown(t *testing.T) {
	s, clock, advance := driven(t)
	b := claim(bucketOf("b", 10, time.Second, 1000), 1)
	left(t, s, b)
	a := client("a")
	a.Life, a.Gen, a.Part, a.Until = 3e8, 7, 900_000, clock.Load()+1e9
	a.beat(t, s)
	advance(295 * time.Second)
	for range 2 {
		a.beat(t, s)
	}
	advance(6 * time.Second)
	if x := a.beat(t, s); x.Unknown != 0 {
		t.Fatalf("%+v, want nothing unknown", x)
	}
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if n := left(t, s, b); n > 160 {
		t.Errorf("%d of 1000 left, though a part of 0.9 came back 6 s ago and may have been spent", n)
	}
}
