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

// An upstream whose limit has risen is soon used: 20 s after a cut, the rate is five times what it was.
func TestUnknownRateGrowsFasterWhileMuchSucceedsAboveTheLastCut(t *testing.T) {
	c := unknownLimit
	c.Start = 20
	k := NewController(0, c, 1e6)
	for now := time.Duration(0); now < time.Second; now += time.Second / 20 {
		k.Report(now, now, outcome.OK, 1)
	}
	k.Report(time.Second, time.Second, outcome.Throttled, 1)
	if busy(k, time.Second, 13*time.Second); k.Rate() > 25 {
		t.Errorf("%v/s 12 s after a cut from 20/s", k.Rate())
	}
	if busy(k, 13*time.Second, 21*time.Second); k.Rate() < 100 {
		t.Errorf("%v/s 20 s after a cut from 20/s, want at least 100", k.Rate())
	}
}

// One of many processes has made too few calls to conclude from their success that the limit has risen.
func TestUnknownRateStaysWithCubicWhileLittleSucceeds(t *testing.T) {
	k := NewController(0, unknownLimit, 1e6)
	k.Report(time.Second, time.Second, outcome.Throttled, 1)
	if busy(k, 2*time.Second, 24*time.Second); k.Rate() > 2.5 {
		t.Errorf("%v/s 23 s after a cut from 1/s, want at most 2.5", k.Rate())
	}
}

// A throttle halves a rate of less than a call in two seconds, although no call succeeded in the last second.
func TestThrottleHalvesSlowRate(t *testing.T) {
	c := unknownLimit
	c.Start = 0.4
	k := NewController(0, c, 1e6)
	for i, want := range []float64{0.2, 0.1, 0.05} {
		now := time.Duration(i+1) * 10 * time.Second
		if k.Report(now, now, outcome.Throttled, 1); !near(k.Rate(), want) {
			t.Errorf("%v/s after %d throttles, want %v", k.Rate(), i+1, want)
		}
	}
}
