package breaker_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

var stories = []struct {
	name   string
	cfg    breaker.Config
	script string
}{
	{"five failures in a minute open it for 30s, two probes close it", five, `
		0s  call failed 4
		50s closed
		50s call failed
		50s open
		50s refused 30s
		79s refused 1s
		80s probe a
		80s refused 1s
		81s a ok
		81s half-open
		81s probe b
		82s b ok
		82s closed
		82s call failed 4
		82s closed
	`},
	{"a failure a whole window old no longer counts", five, `
		0s    call failed
		10s   call failed 3
		60s   call failed
		60s   closed
		69.9s call failed
		69.9s open
	`},
	{"unknown outcomes are failures", five, `
		0s call unknown 5
		0s open
	`},
	{"successes do not lessen the count within the window", five, `
		0s call failed 4
		1s call ok 100
		2s call failed
		2s open
	`},
	{"many failures are counted over the window too", breaker.Config{Failures: 100}, `
		0s  call failed 50
		30s call failed 49
		30s closed
		50s call failed
		50s open
	`},
	{"the instant of the failure counts, not that of the admission", five, `
		0s  admit a
		0s  admit b
		55s call failed 3
		58s a failed
		58s closed
		99s b failed
		99s open
		99s refused 30s
	`},
	{"failures in a row do not decay", breaker.Config{Consecutive: 5, Window: time.Second}, `
		0h  call failed
		10h call failed
		20h call failed
		30h call failed
		30h closed
		40h call failed
		40h open
	`},
	{"a success takes one failure off", breaker.Config{Consecutive: 5, SuccessTakesOne: true}, `
		1s call failed 4
		2s call ok 2
		3s call failed 2
		3s closed
		4s call ok
		1h call failed
		1h closed
		2h call failed
		2h open`},
	{"successes take no more off than there is", breaker.Config{Consecutive: 3, SuccessTakesOne: true}, `
		1s call ok 50
		2s call failed
		3s call ok 50
		4s call failed 2
		4s closed
		5s call failed
		5s open`},
	{"one success ends a run of failures, other answers do not", breaker.Config{Consecutive: 3}, `
		0s call failed 2
		1s call ok
		2s call failed 2
		2s closed
		3s call rejected 9
		3s call canceled 9
		3s call throttled 9
		4s call failed
		4s open
	`},
	{"a share needs its minimum of calls", breaker.Config{Share: 0.5, MinCalls: 20, Window: 10 * time.Second}, `
		0s call failed 19
		0s closed
		1s call failed
		1s open
	`},
	{"a share opens at its share", breaker.Config{Share: 0.5, Window: 10 * time.Second}, `
		0s call ok 20
		1s call failed 19
		1s closed
		2s call failed
		2s open
	`},
	{"calls that say nothing are no part of the share", breaker.Config{Share: 0.5, Window: 10 * time.Second}, `
		0s call rejected 50
		0s call canceled 50
		0s call throttled 50
		1s call failed 19
		1s closed
		1s call failed
		1s open
	`},
	{"successes before the window are no part of the share", breaker.Config{Share: 0.5, Window: 10 * time.Second}, `
		0s  call ok 1000
		30s call failed 20
		30s open
	`},
	{"a new generation is not judged by the calls of the old", breaker.Config{Share: 0.5, Window: time.Hour, Successes: 1}, `
		0s   call ok 1000
		1s   call failed 999
		1s   closed
		1s   call failed
		1s   open
		31s  probe a
		31s  a ok
		31s  call ok 21
		32s  call failed 20
		32s  closed
		33s  call failed
		33s  open
	`},
	{"any rule opens it", breaker.Config{Failures: 10, Consecutive: 3, Share: 0.9}, `
		0s call failed 3
		0s open
	`},
	{"cancellations never open it", breaker.Config{Consecutive: 1}, `
		0s call canceled 1000
		0s closed
	`},
	{"throttles open it only where they count", breaker.Config{Failures: 5, CountThrottled: true, Open: 30 * time.Second}, `
		0s call throttled 5
		0s open
	`},
	{"throttles do not open it by default", five, `
		0s call throttled 1000
		0s closed
	`},
	{"the hint of the failure that opens it sets the open time", five, `
		0s  call failed 4
		0s  call failed after=90s
		0s  refused 1m30s
		90s probe a
	`},
	{"a hint may be shorter than the open time, not nothing", breaker.Config{Consecutive: 1}, `
		0s call failed after=5s
		0s refused 5s
		5s probe a
		5s a failed after=0s
		5s refused 1s
	`},
	{"a hint is capped", breaker.Config{Consecutive: 1, MaxOpen: time.Minute}, `
		0s call failed after=24h
		0s refused 1m
	`},
	{"a failed probe opens it again", five, `
		0s  call failed 5
		30s probe a
		30s a ok
		30s probe b
		31s b failed
		31s open
		31s refused 30s
		61s probe c
		61s c ok
		61s half-open
	`},
	{"a canceled probe gives its place back at once", five, `
		0s  call failed 5
		30s probe a
		31s a canceled
		31s half-open
		31s probe b
		32s b ok
		32s probe c
		32s c ok
		32s closed
	`},
	{"rejected and throttled answers prove to a probe that the upstream is up", five, `
		0s  call failed 5
		30s call rejected
		30s call throttled
		30s closed
	`},
	{"a throttled probe is a failure where throttles count", breaker.Config{Failures: 5, CountThrottled: true, Open: 30 * time.Second}, `
		0s  call failed 5
		30s call throttled
		30s open
	`},
	{"a lost probe frees its place at its deadline and its failure is not heard later", breaker.Config{Failures: 5, Open: 30 * time.Second, ProbeTimeout: 10 * time.Second}, `
		0s  call failed 5
		30s probe lost
		39s refused 1s
		39.5s refused 500ms
		40s probe next
		41s lost failed
		41s half-open
		41s refused 1s
		42s next ok
		42s probe last
		42s last ok
		42s closed
	`},
	{"a lost probe that succeeds shows that the upstream is up", breaker.Config{Failures: 5, Open: 30 * time.Second, ProbeTimeout: time.Second}, `
		0s  call failed 5
		30s probe a
		31s probe b
		32s probe c
		32.5s a ok
		32.5s refused 500ms
		32.6s b ok
		32.6s closed
		32.7s c failed
		32.7s closed
	`},
	{"a probe of an earlier half-open phase counts for nothing", breaker.Config{Failures: 5, Successes: 1, Open: 30 * time.Second, ProbeTimeout: time.Second}, `
		0s  call failed 5
		30s probe a
		31s probe b
		31s b failed
		61s a ok
		61s open
		61s probe c
		61s a ok
		61s half-open
	`},
	{"a failure after a probe's deadline counts for nothing even before the next", breaker.Config{Failures: 5, Successes: 1, Open: 30 * time.Second, ProbeTimeout: 10 * time.Second}, `
		0s  call failed 5
		30s probe late
		40s late failed
		40s half-open
		40s probe next
	`},
	{"a success after a probe's deadline counts before the next", breaker.Config{Failures: 5, Successes: 1, Open: 30 * time.Second, ProbeTimeout: 10 * time.Second}, `
		0s  call failed 5
		30s probe late
		40s late ok
		40s closed
	`},
	{"a probe reported twice counts once", five, `
		0s  call failed 5
		30s probe a
		30s a ok
		30s a ok
		30s half-open
		30s a failed
		30s half-open
	`},
	{"calls of the closed phase are no probes", five, `
		0s  admit old1
		0s  admit old2
		0s  admit old3
		1s  call failed 5
		31s probe a
		32s old1 ok
		32s old2 ok
		32s half-open
		32s refused 1s
		33s old3 failed
		33s half-open
		34s a ok
		34s half-open
	`},
	{"calls of before the opening do not count after the closing", breaker.Config{Consecutive: 1, Successes: 1}, `
		0s  admit old
		0s  call failed
		30s call ok
		30s closed
		31s old failed
		31s closed
	`},
	{"late failures neither prolong nor repeat the open time", breaker.Config{Consecutive: 1, Open: 30 * time.Second}, `
		0s admit old
		0s call failed
		9s old failed after=5m
		9s refused 21s
	`},
	{"forced open, it refuses for the time given and then probes", five, `
		0s  admit a
		0s  force-open 2m
		1s  a ok
		60s refused 1m
		2m  probe b
		2m  b ok
		2m  call ok
		2m  closed
	`},
	{"forced open without a time, it waits for a reset", five, `
		5s     force-open
		99999h refused
		99999h reset
		99999h call ok
		99999h closed
	`},
	{"forced closed, it stays closed until it is reset", five, `
		0s call failed 5
		1s force-close
		1s call failed 1000
		2s closed
		3s reset
		3s call failed 4
		3s closed
		3s call failed
		3s open
	`},
	{"a reset forgets what was counted", breaker.Config{Failures: 5, Consecutive: 5}, `
		0s call failed 4
		0s reset
		0s call failed 4
		0s closed
	`},
	{"off, it opens only by hand, and closes without a probe", breaker.Config{Off: true}, `
		0s call failed 1000
		0s closed
		1s force-open 10s
		2s refused 9s
		11s admit a
		11s closed
	`},
}

func TestStories(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) { tell(t, s.cfg, s.script) })
	}
}

// One failure a minute for a day: a breaker whose failures never expire would open.
func TestOneFailureAMinuteNeverOpens(t *testing.T) {
	s := &story{t: t, cfg: five, br: breaker.New("up", five, nil), permits: map[string]breaker.Ticket{}}
	for minute := range 24 * 60 {
		s.now = time.Duration(minute) * time.Minute
		s.call([]string{"failed"})
		if s.agree("a failure"); s.state.Phase != breaker.Closed {
			t.Fatalf("opened in minute %d: %v", minute, s.state.Why)
		}
	}
}

func TestThirtySlowFailuresInARowOpen(t *testing.T) {
	cfg := breaker.Config{Consecutive: 30, Window: time.Minute}
	s := &story{t: t, cfg: cfg, br: breaker.New("up", cfg, nil), permits: map[string]breaker.Ticket{}}
	for i := range 30 {
		if s.state.Phase != breaker.Closed {
			t.Fatalf("opened after %d failures", i)
		}
		s.now = time.Duration(i) * 18 * time.Second
		s.call([]string{"failed"})
		s.agree("a failure")
	}
	if s.state.Phase != breaker.Open || s.state.Why != breaker.FailuresInARow {
		t.Errorf("got %v for %v, want open for failures in a row", s.state.Phase, s.state.Why)
	}
}

func TestProbesComeAtLongerAndLongerIntervals(t *testing.T) {
	tell(t, breaker.Config{Consecutive: 2, Successes: 1, FirstOpen: time.Second, Open: 3 * time.Second}, `
		0s call failed 2
		0s refused 1s
		1s probe a
		1s a failed
		1s refused 1.5s
		2.5s probe b
		2.5s b failed
		2.5s refused 2.25s
		4.75s probe c
		4.75s c failed
		4.75s refused 3s
		7.75s probe d
		7.75s d failed
		7.75s refused 3s
		10.75s probe e
		10.75s e ok
		10.75s closed
		11s call failed 2
		11s refused 1s
	`)
}

func TestHintsLeaveTheIntervalsAsTheyAre(t *testing.T) {
	tell(t, breaker.Config{Consecutive: 1, FirstOpen: 2 * time.Second, Open: 30 * time.Second}, `
		0s call failed after=10s
		0s refused 10s
		10s probe a
		10s a failed
		10s refused 3s
	`)
}
