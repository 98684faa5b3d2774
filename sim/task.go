package sim

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"time"
)

// A task is a goroutine of the world. It is a coroutine, like those of iter.Pull: goroutines hand the thread to each
// other without Go's scheduler. When its function has returned, another call of Go reuses it, because the stack of a
// new goroutine would have to grow again.
type task struct {
	w     *World
	f     func() // nil if it is idle
	id    uint64
	event event // when it continues
	woken error // the result of Sleep
	on    *node // the context whose end would wake it; nil if there is none
	slot  int   // index among the context's sleepers

	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// Go starts a goroutine of the world. It runs in turn, at the present instant, and not before the caller sleeps.
func (w *World) Go(f func()) {
	t := w.idleTask()
	t.f = f
	w.plan(&t.event, w.now)
	t.id = t.event.seq
}

// idleTask removes a task from the idle ones. If there is none, it creates one.
func (w *World) idleTask() *task {
	if last := len(w.idle) - 1; last >= 0 {
		t := w.idle[last]
		w.idle = w.idle[:last]
		return t
	}
	t := &task{w: w}
	t.event.task = t
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		for ok := true; ok; ok = yield(struct{}{}) {
			t.body()
		}
	})
	w.tasks = append(w.tasks, t)
	return t
}

// A Panic is a panic in a goroutine of a world.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value, if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// unwinding is the panic with which Close ends a goroutine.
type unwinding struct{}

func (t *task) body() {
	defer func() {
		t.f = nil
		switch v := recover().(type) {
		case nil, unwinding:
		default:
			panic(&Panic{v, debug.Stack()})
		}
	}()
	t.f()
}

// resume lets a goroutine run until it sleeps or returns.
func (w *World) resume(t *task) {
	w.running = t
	defer func() { w.running = nil }() // also when the goroutine panics
	if t.next(); t.f == nil {
		w.idle = append(w.idle, t)
	}
}

// sleep parks the running goroutine until the instant, or the end of the node. If no other event is due before, it
// continues without a switch of goroutines.
func (t *task) sleep(at time.Duration, n *node) error {
	w := t.w
	t.woken = nil
	w.plan(&t.event, at)
	n.add(t)
	if w.next = w.advance(); w.next == t {
		w.next = nil
	} else if !t.yield(struct{}{}) {
		w.agenda.remove(&t.event)
		n.remove(t)
		panic(unwinding{})
	}
	n.remove(t)
	return t.woken
}

// wake makes a sleeping goroutine continue now, with the cause of its context's end.
func (t *task) wake(cause error) {
	t.woken = cause
	t.w.agenda.remove(&t.event)
	t.w.plan(&t.event, t.w.now)
}

// current returns the running goroutine.
func (w *World) current() *task {
	switch {
	case w.closed:
		panic(unwinding{})
	case w.running == nil:
		panic("sim: Sleep outside of the goroutines that World.Go started")
	}
	return w.running
}

// ended returns the cause of ctx's end, or nil if it has not ended.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
