// Package watchdog shows where tests hang. go test stops a hanging test binary only after ten minutes, and a build server may
// stop it without a message. The watchdog prints all goroutines after one minute, and ends the binary after three.
//
//	func TestMain(m *testing.M) { watchdog.Run(m) }
//
// Tests hang if none begins or ends, the process uses almost no CPU, and no test waits for another program. So a test may be
// slow on a slow machine. A test whose work happens elsewhere reports progress by Moved.
package watchdog

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	every    = 5 * time.Second
	show     = time.Minute
	end      = 3 * time.Minute
	computes = 0.05 // of one core; background work uses less
)

var steps atomic.Int64

// Moved reports progress of a test.
func Moved() { steps.Add(1) }

// Run runs the tests and ends the process, as a TestMain should.
func Run(m *testing.M) {
	Start()
	os.Exit(m.Run())
}

// Start watches until the process ends. It is for a TestMain with other tasks.
func Start() {
	w := &watch{out: os.Stderr, cpu: cpuTime, steps: steps.Load, stacks: stacks, exit: os.Exit}
	go func() {
		for now := range time.Tick(every) {
			w.look(now)
		}
	}()
}

// A watch is the state of the watchdog.
type watch struct {
	out    io.Writer
	cpu    func() time.Duration // CPU time of this process
	steps  func() int64         // number of calls of Moved
	stacks func() string        // of all goroutines
	exit   func(code int)

	looked time.Time // time of the last check
	spent  time.Duration
	step   int64     // steps at the last check
	tests  string    // running tests at the last check
	moved  time.Time // time of the last progress
	shown  bool      // stacks were printed since then
}

// look checks for progress. It reads the stacks only if the process is idle, because the stacks of 100,000 goroutines are large.
func (w *watch) look(now time.Time) {
	before, spent := w.looked, w.cpu()
	busy := float64(spent-w.spent) >= computes*float64(now.Sub(before))
	step := w.steps()
	busy = busy || step != w.step
	w.looked, w.spent, w.step = now, spent, step
	if busy || w.moved.IsZero() {
		w.moved, w.shown = now, false
		return
	}
	all := w.stacks()
	if tests, elsewhere := running(all); tests != w.tests || elsewhere {
		w.moved, w.tests, w.shown = now, tests, false
		return
	}
	switch still := now.Sub(w.moved); {
	case still >= end:
		fmt.Fprintf(w.out, "watchdog: no test has begun or ended for %v, and nothing is computed: the tests hang\n\n%s\n", still.Round(time.Second), all)
		w.exit(2)
	case still >= show && !w.shown:
		w.shown = true
		fmt.Fprintf(w.out, "watchdog: no test has begun or ended for %v, and nothing is computed; all goroutines:\n\n%s\n", still.Round(time.Second), all)
	}
}

// running returns the goroutines of tests, and reports whether one of them waits for another program, as a fuzzer does for its
// workers.
func running(stacks string) (tests string, elsewhere bool) {
	elsewhere = strings.Contains(stacks, "internal/fuzz.CoordinateFuzzing(")
	for one := range strings.SplitSeq(stacks, "\n\n") {
		if !strings.Contains(one, "testing.tRunner(") && !strings.Contains(one, "testing.(*B).") && !strings.Contains(one, "main.main()") {
			continue
		}
		id, _, _ := strings.Cut(one, " [")
		tests += id + "\n"
		elsewhere = elsewhere || strings.Contains(one, "os.(*Process).Wait(")
	}
	return tests, elsewhere
}

func stacks() string {
	for size := 1 << 16; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size >= 1<<28 {
			return string(buf[:n])
		}
	}
}
