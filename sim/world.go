package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A World consists of goroutines with a virtual time. The goroutine that created it may call its methods while it
// does not run. Its own goroutines may call them while it runs.
type World struct {
	now     time.Duration
	until   time.Duration // the end of the present run
	seq     uint64
	agenda  agenda
	running *task // nil while no goroutine of the world runs
	next    *task // the goroutine whose turn it is
	tasks   []*task
	idle    []*task
	foreign map[<-chan struct{}]*node // contexts not made by the clock, with waiting goroutines
	closed  bool
	rand    *rand.Rand
}

// New returns a world at instant 0. The seed determines all random numbers in it.
func New(seed uint64) *World {
	return &World{
		foreign: make(map[<-chan struct{}]*node),
		rand:    rand.New(rand.NewPCG(seed, 0x77656972)),
	}
}

// Rand returns the world's random numbers. Only its goroutines may use them.
func (w *World) Rand() *rand.Rand { return w.rand }

// Now returns the present instant.
func (w *World) Now() time.Duration { return w.now }

// ErrDeadlock means that all remaining goroutines sleep forever.
var ErrDeadlock = errors.New("deadlock: no goroutine will ever wake")

// Run lets the goroutines run until all have returned. It returns an ErrDeadlock if some never will.
//
// A panic in one of them ends the run, and Run panics with a *Panic. If one ends itself with runtime.Goexit, as
// testing.T.FailNow does, Run ends its caller in the same way.
func (w *World) Run() error { return w.RunUntil(forever) }

// RunUntil is Run up to and including an instant. The run can be continued.
func (w *World) RunUntil(at time.Duration) error {
	if w.running != nil || w.closed {
		panic("sim: Run within the world, or after Close")
	}
	w.until = at
	for {
		t := w.next
		if w.next = nil; t == nil {
			t = w.advance()
		}
		if t == nil {
			break
		}
		w.resume(t)
	}
	return w.over()
}

// over returns the result of a run without further events.
func (w *World) over() error {
	if w.until != forever {
		w.now = max(w.now, w.until)
		return nil
	}
	if rest := w.sleepers(); rest != "" {
		return fmt.Errorf("%w: %s", ErrDeadlock, rest)
	}
	return nil
}

// sleepers describes which functions the remaining goroutines run.
func (w *World) sleepers() string {
	count := make(map[string]int)
	for _, t := range w.tasks {
		if t.f != nil {
			f := runtime.FuncForPC(reflect.ValueOf(t.f).Pointer())
			file, line := f.FileLine(f.Entry())
			count[fmt.Sprintf("%s:%d", filepath.Base(file), line)]++
		}
	}
	var functions []string
	for f, n := range count {
		functions = append(functions, fmt.Sprintf("%d in the function at %s", n, f))
	}
	slices.Sort(functions)
	return strings.Join(functions, ", ")
}

// Close ends the remaining goroutines, wherever they sleep, by a panic that runs their deferred functions. They must
// not recover from it.
func (w *World) Close() {
	if w.closed {
		return
	}
	w.closed = true
	slices.SortFunc(w.tasks, func(a, b *task) int { return cmp.Compare(a.id, b.id) })
	for _, t := range w.tasks {
		t.stop()
	}
}

// advance moves time to the next instant at which a goroutine is due, ends timeouts on the way, and removes the
// goroutine from the agenda. It returns nil if there is none in this run.
func (w *World) advance() *task {
	for {
		w.watch()
		e := w.agenda.first()
		if e == nil || e.at > w.until || e.at == forever {
			return nil
		}
		w.now = e.at
		w.agenda.remove(e)
		if e.task != nil {
			return e.task
		}
		e.timer.finish(context.DeadlineExceeded, e.timer.cause)
	}
}

// plan puts an event on the agenda, after all others of its instant.
func (w *World) plan(e *event, at time.Duration) {
	w.seq++
	e.at, e.seq = at, w.seq
	w.agenda.add(e)
}

// after returns the instant d from now.
func (w *World) after(d time.Duration) time.Duration {
	if d > forever-w.now {
		return forever
	}
	return w.now + d
}
