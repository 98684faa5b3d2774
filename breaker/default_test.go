package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// Stories with the default config: no constant is changed.
var defaults = []struct{ name, script string }{
	{"half of twenty calls within ten seconds open it for a second", `
		0s call ok 10
		9s call failed 9
		9s closed
		9s call failed
		9s open
		9s refused 1s
	`},
	{"nineteen failures at once leave it closed", `
		0s call failed 19
		4s closed
	`},
	{"a share below one half leaves it closed", `
		0s call ok 51
		1s call failed 50
		1s closed
		1s call failed
		1s open
	`},
	{"calls older than ten seconds are no part of the share", `
		0s  call ok 10
		1s  call failed 9
		11s call ok
		12s call failed 9
		12s closed
	`},
	{"ten in a row over five seconds open it", `
		0s   call failed 9
		4.9s call failed
		4.9s closed
		5s   call failed
		5s   open
	`},
	{"ten in a row open a breaker that is seldom called", `
		0h call failed 9
		2h closed
		9h call failed
		9h open
		9h refused 1s
	`},
	{"a good call ends the row and its time", `
		0s  call failed 9
		3s  call ok
		15s call failed 9
		15s closed
		19s call failed
		19s closed
		20s call failed
		20s open
	`},
	{"who leaves, what is rejected and what is throttled count neither way", `
		0s  call rejected 100
		0s  call canceled 100
		0s  call throttled 100
		0s  call failed 9
		15s call rejected
		15s call canceled
		15s call throttled
		15s closed
		15s call failed
		15s open
	`},
	{"it stays open longer and longer, up to half a minute", `
		0s call failed 20
		1s probe a
		1s a failed
		1s refused 1.5s
		2.5s probe b
		2.5s b failed
		2.5s refused 2.25s
		4.75s probe c
		4.75s c ok
		4.75s probe d
		4.75s d ok
		4.75s closed
		5s call failed 20
		5s refused 1s
	`},
}

func TestDefaultStories(t *testing.T) {
	for _, s := range defaults {
		t.Run(s.name, func(t *testing.T) { tell(t, breaker.Config{}, s.script) })
	}
}

func TestTheDefaultNeverStaysOpenLongerThanHalfAMinute(t *testing.T) {
	br, now := new(breaker.Breaker), time.Duration(0)
	fail(br, 0, 20)
	for range 20 {
		v := br.Look(now)
		if v.Wait > 30*time.Second {
			t.Fatalf("at %v: open for %v", now, v.Wait)
		}
		now += v.Wait
		fail(br, now, 1)
	}
	if v := br.Look(now); v.Wait != 30*time.Second {
		t.Errorf("after 20 failed probes: open for %v, want 30s", v.Wait)
	}
}

// The breaker stays closed for an upstream with random failures of one call in a hundred. Five failures a minute would be reached
// in five seconds of it. Each case lasts ten minutes.
func TestTheDefaultStaysClosedForUpstreamsThatErrALittle(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	for _, perSecond := range []int{1, 10, 100, 1000} {
		for _, share := range []float64{0.01, 0.05, 0.2} {
			r := rand.New(rand.NewPCG(uint64(perSecond), 7))
			br := new(breaker.Breaker)
			for i := range 600 * perSecond {
				now := time.Duration(i) * time.Second / time.Duration(perSecond)
				p, _, admitted := br.Admit(now)
				if !admitted {
					t.Fatalf("%d/s with %v errors: open after %v", perSecond, share, now)
				}
				o := ok
				if r.Float64() < share {
					o = failed
				}
				br.Report(now, p, o)
			}
		}
	}
}

func TestTheDefaultOpensWhateverTheRate(t *testing.T) {
	for perSecond, most := range map[float64]time.Duration{0.1: 90 * time.Second, 1: 10 * time.Second, 3: 10 * time.Second, 100: time.Second} {
		br, now := new(breaker.Breaker), time.Duration(0)
		for br.Look(now).Phase == breaker.Closed && now < time.Hour {
			now += time.Duration(float64(time.Second) / perSecond)
			fail(br, now, 1)
		}
		if now > most+time.Duration(float64(time.Second)/perSecond) {
			t.Errorf("%v/s, all fail: open after %v, want %v at most", perSecond, now, most)
		}
	}
}

func TestSchedulesAreValid(t *testing.T) {
	for _, name := range breaker.Schedules() {
		c, found := breaker.Schedule(name)
		if err := c.Validate(); err != nil || !found {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, found := breaker.Schedule("none"); found {
		t.Error("a schedule that is none")
	}
}
