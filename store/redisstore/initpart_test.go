package redisstore_test

import (
	"testing"
	"time"
)

// What a process spent on its own part of a cold store is spent, when somebody then says that the group is new.
func TestInitForgetsNoPartThatWasOut(t *testing.T) {
	for _, init := range []bool{false, true} {
		s, clock, advance := driven(t)
		b := claim(bucketOf("b", 10, time.Second, 1000), 1)
		left(t, s, b)
		a := client("a")
		a.Life, a.Gen, a.Part, a.Until = 3e8, 7, 400_000, clock.Load()+1e8 // it shows 0.4
		for range 10 {
			x := a.beat(t, s)
			if x.Unknown != 600_000 {
				t.Fatalf("%+v", x)
			}
			advance(300 * time.Millisecond)
		}
		// It hears nothing for two minutes: from the silence on, its part is out, 4 tokens a second come, 400 are saved
		// up, and it spends them at the end.
		advance(120 * time.Second)
		left(t, s, b)
		a.beat(t, s) // the answer arrives
		advance(300 * time.Millisecond)
		a.beat(t, s) // and is acknowledged: it is in again
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
