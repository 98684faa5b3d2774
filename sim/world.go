package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A World is some goroutines in a time of their own. Its methods are for the
// goroutine that made it while it does not run, and for its own goroutines while
// it does.
type World struct {
	now     time.Duration
	until   time.Duration // where the present run ends
	seq     uint64
	agenda  agenda
	running *task // nil while nobody of the world runs
	next    *task // whose turn it is
	tasks   map[*task]struct{}
	foreign map[<-chan struct{}]*node // contexts not made by the clock that somebody waits for
	closed  bool
	rand    *rand.Rand
}

// New makes a world at instant 0. Everything that happens by chance in it comes
// from the seed.
func New(seed uint64) *World {
	return &World{
		tasks:   make(map[*task]struct{}),
		foreign: make(map[<-chan struct{}]*node),
		rand:    rand.New(rand.NewPCG(seed, 0x77656972)),
	}
}

// Rand is the world's source of chance, to be used by its goroutines only.
func (w *World) Rand() *rand.Rand { return w.rand }

// Now is the present instant.
func (w *World) Now() time.Duration { return w.now }

// ErrDeadlock means that goroutines are left which all sleep for ever.
var ErrDeadlock = errors.New("deadlock: nobody will ever wake")

// Run lets the goroutines run until all have returned. It returns an
// ErrDeadlock if some never will.
//
// A panic in one of them ends the run and comes out of Run as a *Panic; one that
// ends itself with runtime.Goexit, as testing.T.FailNow does, ends the caller of
// Run in the same way.
func (w *World) Run() error { return w.RunUntil(forever) }

// RunUntil is Run up to the instant and including it. The run can be continued.
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

// over is how a run ended in which nothing is left to do until its end.
func (w *World) over() error {
	if w.until != forever {
		w.now = max(w.now, w.until)
		return nil
	}
	if len(w.tasks) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrDeadlock, w.sleepers())
}

// sleepers says where those were started who are left.
func (w *World) sleepers() string {
	count := make(map[string]int)
	for t := range w.tasks {
		f, _ := runtime.CallersFrames(t.from[:]).Next()
		count[fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)]++
	}
	var places []string
	for place, n := range count {
		places = append(places, fmt.Sprintf("%d started at %s", n, place))
	}
	slices.Sort(places)
	return strings.Join(places, ", ")
}

// Close ends the goroutines that are left, wherever they sleep, by a panic that
// runs their deferred functions and that they must not recover from.
func (w *World) Close() {
	if w.closed {
		return
	}
	w.closed = true
	left := make([]*task, 0, len(w.tasks))
	for t := range w.tasks {
		left = append(left, t)
	}
	slices.SortFunc(left, func(a, b *task) int { return int(a.id) - int(b.id) })
	for _, t := range left {
		t.stop()
	}
}

// advance moves time to the next instant at which a goroutine is due, ending
// what times out on the way, and takes it from the agenda. It returns nil if
// there is none in this run.
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

// plan puts an event on the agenda, behind all others of its instant.
func (w *World) plan(e *event, at time.Duration) {
	w.seq++
	e.at, e.seq = at, w.seq
	w.agenda.add(e)
}

// after is the instant d from now.
func (w *World) after(d time.Duration) time.Duration {
	if d > forever-w.now {
		return forever
	}
	return w.now + d
}
