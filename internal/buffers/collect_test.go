package buffers

import "testing"

func TestMemoryIsCollectedAtTheFloorOrAtTwiceWhatIsHeld(t *testing.T) {
	for live, want := range map[int64]int{
		0: 3100, 1 << 20: 3100, 4 << 20: 700, 8 << 20: 300, 16 << 20: 100, 17 << 20: 100, 1 << 40: 100,
	} {
		if got := percent(live); got != want {
			t.Errorf("%d bytes are held: got %d%%, want %d%%", live, got, want)
		}
	}
	// The heap may grow at least as far as by Go's default, and at most to spared or Go's default, whichever is larger.
	for live := int64(1 << 20); live < 1<<30; live += live / 7 {
		if at := live + live*int64(percent(live))/100; at > max(spared, 2*live) || at < 2*live {
			t.Fatalf("%d bytes are held: collected at %d", live, at)
		}
	}
}
