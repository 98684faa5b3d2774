package adaptive

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

var unknownLimit = Config{On: true, Unknown: true}

// busy reports successes as fast as the rate allows until an instant.
func busy(k *Controller, from, until time.Duration) {
	for now := from; now < until; now += time.Duration(float64(time.Second) / k.Rate()) {
		k.Report(now, now, outcome.OK, 1)
	}
}

// Until the first throttle the rate doubles each second. Then it is half of the used rate.
func TestUnknownRateDoublesUntilTheFirstThrottle(t *testing.T) {
	k := NewController(0, unknownLimit, 1e6)
	if k.Rate() != 1 {
		t.Fatalf("starts at %v/s", k.Rate())
	}
	busy(k, 0, 5*time.Second)
	if r := k.Rate(); r < 12 || r > 40 {
		t.Errorf("%v/s after 5 s, want about 32", r)
	}
	before := k.Rate()
	k.Report(5*time.Second, 5*time.Second, outcome.Throttled, 1)
	if from, ago := k.Cut(6 * time.Second); from > before || from < before/4 || ago != time.Second || !near(k.Rate(), from/2) {
		t.Errorf("%v/s after a throttle at %v/s; reports a cut from %v, %v ago", k.Rate(), before, from, ago)
	}
}

// If Start is too high, the first throttle lowers the rate to the used rate immediately.
func TestStartOfUnknownRateIsLoweredToWhatWasUsed(t *testing.T) {
	c := unknownLimit
	c.Start = 1000
	k := NewController(0, c, 1e6)
	for now := time.Duration(0); now < time.Second; now += 50 * time.Millisecond {
		k.Report(now, now, outcome.OK, 1)
	}
	if k.Report(time.Second, time.Second, outcome.Throttled, 1); k.Rate() > 12 {
		t.Errorf("%v/s after a throttle at 20/s, want 10", k.Rate())
	}
}

// The learned rate is outdated after 100 s without calls. The rate is then halved, and soon back.
func TestUnknownRateIsHalvedAfterAPause(t *testing.T) {
	k := NewController(0, unknownLimit, 1e6)
	busy(k, 0, 5*time.Second)
	k.Report(5*time.Second, 5*time.Second, outcome.Throttled, 1)
	busy(k, 6*time.Second, 20*time.Second)
	learned := k.Rate()
	busy(k, 80*time.Second, 80*time.Second+1)
	if r := k.Rate(); r < learned {
		t.Errorf("%v/s after a minute without calls, %v before", r, learned)
	}
	learned = k.Rate()
	k.Report(200*time.Second, 200*time.Second, outcome.OK, 1)
	if r := k.Rate(); !near(r, learned/2) {
		t.Errorf("%v/s after two minutes without calls, %v before", r, learned)
	}
	if busy(k, 201*time.Second, 215*time.Second); k.Rate() < 0.9*learned {
		t.Errorf("%v/s 15 s later, %v before the pause", k.Rate(), learned)
	}
}
