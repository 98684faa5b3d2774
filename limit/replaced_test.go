package limit

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// The upstream's reports must not outlive the configuration that uses them.
func TestALimitThatIsToldNoMoreHasItsOwnRate(t *testing.T) {
	r, _ := NewRegistry(0, advertisedLimit())
	for _, key := range []string{"", "a"} {
		hearing(t, r, 0, key, levels(10_000, 9_999, 6*time.Millisecond))
		if got := r.Get(0, key).Look(0); got.Full != 2500 {
			t.Fatalf("key %q: it was not told: %+v", key, got)
		}
	}
	l := advertisedLimit()
	l.Advertised = ""
	if err := r.Set(0, l); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "a"} {
		if got := r.Get(0, key).Look(0); got.Full != 50 || !near(got.PerSecond, 500.0/60) {
			t.Errorf("key %q looks like %+v, want 500 a minute, 50 at once", key, got)
		}
	}
}

// Calls whose responses report no limits still use them.
func TestWhatWasUsedWithoutAWordIsNobodyElses(t *testing.T) {
	r, _ := NewRegistry(0, advertisedLimit())
	hearing(t, r, 0, "a", levels(200, 199, 432*time.Second))
	for range 150 {
		hearing(t, r, 0, "a", nil)
	}
	now := 6 * time.Hour // 50 units have come since
	before := r.Get(now, "a").Look(now).Left
	hearing(t, r, now, "a", levels(200, before-1, time.Duration(200-before+1)*432*time.Second))
	if got := r.Get(now, "a").Look(now).Left; got != before-1 {
		t.Errorf("%d are left after one call more, want %d", got, before-1)
	}
}

// A limiter that is about to be replaced refuses no call permanently.
func TestALimiterThatIsBeingReplacedIsOutOfUse(t *testing.T) {
	r, _ := NewRegistry(0, advertisedLimit())
	m := r.Get(0, "a")
	m.bucket.redraw(func(l *bucket.Line) *bucket.Line { return new(l.Shut()) }) // the first step of close
	if !m.shape().retired() {
		t.Error("a limiter that gives nothing is not out of use: who asks it is told that it costs too much")
	}
	if got := r.Most(0, "a"); got != 50 {
		t.Errorf("an estimate is cut down to %d, want 50", got)
	}
}
