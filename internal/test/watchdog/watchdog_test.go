package watchdog

import (
	"strings"
	"testing"
	"time"
)

const idle = `goroutine 1 [chan receive]:
testing.(*T).Run(0x1)
main.main()

goroutine 7 [sync.Mutex.Lock, 1 minutes]:
example.Hang()
testing.tRunner(0x2)

goroutine 9 [select]:
example.tick()
`

// A scene is the watchdog's input.
type scene struct {
	watch
	now    time.Time
	said   strings.Builder
	ended  int
	stacks string
	spent  time.Duration
	moved  int64
}

func newScene() *scene {
	s := &scene{now: time.Unix(0, 0), stacks: idle}
	s.watch = watch{
		out: &s.said, cpu: func() time.Duration { return s.spent }, stacks: func() string { return s.stacks },
		steps: func() int64 { return s.moved },
		exit:  func(int) { s.ended++ },
	}
	s.look(s.now)
	return s
}

// pass advances time, with a share of computing.
func (s *scene) pass(d time.Duration, share float64) {
	for range d / every {
		s.now = s.now.Add(every)
		s.spent += time.Duration(share * float64(every))
		s.look(s.now)
	}
}

func TestShowsAfterAMinuteAndEndsAfterThree(t *testing.T) {
	s := newScene()
	s.pass(60*time.Second, 0.01)
	if s.said.Len() > 0 {
		t.Errorf("after less than a minute of the same: %s", &s.said)
	}
	s.pass(10*time.Second, 0.01)
	if n := strings.Count(s.said.String(), "example.Hang"); n != 1 || s.ended > 0 {
		t.Errorf("after a minute: shown %d times, ended %d; want once and no end", n, s.ended)
	}
	s.pass(110*time.Second, 0.01)
	if n := strings.Count(s.said.String(), "example.Hang"); n != 1 {
		t.Errorf("shown %d times", n)
	}
	if s.pass(10*time.Second, 0.01); s.ended == 0 {
		t.Error("not ended after three minutes")
	}
}

func TestATestThatSaysSoGoesOn(t *testing.T) {
	s := newScene()
	for range 20 {
		s.pass(50*time.Second, 0)
		s.moved++
	}
	if s.said.Len() > 0 || s.ended > 0 {
		t.Errorf("ended %d times and said %s", s.ended, &s.said)
	}
}

func TestProgressIsATestThatBeginsOrAnythingComputed(t *testing.T) {
	s := newScene()
	for i := range 20 {
		s.pass(50*time.Second, 0)
		if i%2 == 0 {
			s.pass(every, 0.2)
		} else {
			s.stacks = strings.Replace(idle, "goroutine 7", "goroutine "+strings.Repeat("8", i), 1)
		}
	}
	if s.said.Len() > 0 || s.ended > 0 {
		t.Errorf("ended %d times and said %s", s.ended, &s.said)
	}
}

func TestAnotherProgramMayTakeItsTime(t *testing.T) {
	waits := strings.Replace(idle, "example.Hang()", "os.(*Process).Wait(0x1)", 1)
	fuzzes := idle + "\ngoroutine 10 [select]:\ninternal/fuzz.CoordinateFuzzing(0x1)\ntesting.fRunner(0x1)\n"
	for _, waits := range []string{waits, fuzzes} {
		s := newScene()
		s.stacks = waits
		s.pass(time.Hour, 0)
		if s.said.Len() > 0 || s.ended > 0 {
			t.Errorf("%s: ended %d times and said %s", waits, s.ended, &s.said)
		}
	}
}

// The watchdog parses the runtime's stack of this test.
func TestKnowsARunningTest(t *testing.T) {
	if tests, _ := running(stacks()); strings.Count(tests, "goroutine ") < 2 {
		t.Errorf("want main and this test, got %q", tests)
	}
	if cpuTime() < 0 {
		t.Error("less than nothing was computed")
	}
}
