package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/observe"
)

// A Target is where messages go.
type Target interface {
	// Name is what the target is called in logs: nothing secret.
	Name() string
	// Send makes one attempt to send the message. The error shows no secret; if it is a
	// *SendError it says whether and when to try again.
	Send(ctx context.Context, m Message) error
}

// A SendError is why a message was not sent.
type SendError struct {
	Target string
	Status int           // the HTTP status; 0 if there was no answer
	After  time.Duration // do not try again sooner
	Final  bool          // do not try again at all
	Err    error         // nil if the status says it all
}

func (e *SendError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: status %d", e.Target, e.Status)
	}
	return fmt.Sprintf("%s: %v", e.Target, e.Err)
}

func (e *SendError) Unwrap() error { return e.Err }

// A worker sends messages to one target, one after the other and on a goroutine of its own.
type worker struct {
	target Target
	config *Config
	queue  chan Message
	ctx    context.Context // ends when Close may wait no longer
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, when a message has left
	ended   bool
	count   Stats
}

func newWorker(t Target, c *Config) *worker {
	w := &worker{target: t, config: c, queue: make(chan Message, c.Queue), done: make(chan struct{}), changed: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.count.Target = t.Name()
	go w.run()
	return w
}

// take takes a message, or drops it if there is no room.
func (w *worker) take(m Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		w.count.Dropped++
		return
	}
	select {
	case w.queue <- m:
		w.count.Waiting++
	default:
		w.count.Dropped++
	}
}

func (w *worker) run() {
	defer close(w.done)
	for m := range w.queue {
		err := w.deliver(m)
		w.note(m, err)
	}
}

func (w *worker) note(m Message, err error) {
	w.mu.Lock()
	w.count.Waiting--
	switch {
	case err == nil:
		w.count.Sent++
	case w.ctx.Err() != nil:
		w.count.Dropped++
	default:
		w.count.Failed++
	}
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	if err != nil && w.config.Log != nil {
		w.config.Log.Warn("message not sent", "target", w.target.Name(), "kind", string(m.Kind), "resolved", m.Resolved,
			"upstream", m.Upstream, "error", observe.Error(err))
	}
}

// longestHint is how long a target may have a message wait: others wait behind it.
const longestHint = 5 * time.Minute

// deliver sends a message, in several attempts if need be.
func (w *worker) deliver(m Message) (err error) {
	for attempt := 1; ; attempt++ {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if err = w.send(m); err == nil {
			return nil
		}
		wait := time.Second << min(attempt-1, 5)
		wait = wait/2 + rand.N(wait/2)
		if e, ok := errors.AsType[*SendError](err); ok {
			if e.Final || e.After > longestHint {
				return err
			}
			wait = max(wait, e.After)
		}
		if attempt >= w.config.Attempts || !w.sleep(wait) {
			return err
		}
	}
}

// send survives a target that panics.
func (w *worker) send(m Message) (err error) {
	ctx, cancel := context.WithTimeout(w.ctx, w.config.Timeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = &SendError{Target: w.target.Name(), Final: true, Err: errors.New("it panicked")}
		}
	}()
	return w.target.Send(ctx, m)
}

func (w *worker) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// flush waits until no message waits, or ctx ends, and says how many do then.
func (w *worker) flush(ctx context.Context) int64 {
	for {
		w.mu.Lock()
		left, changed := w.count.Waiting, w.changed
		w.mu.Unlock()
		if left == 0 {
			return 0
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return left
		}
	}
}

// end lets no more messages in.
func (w *worker) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		close(w.queue)
	}
}

// wait waits until all messages are sent or given up, or ctx ends, and says how many
// were dropped.
func (w *worker) wait(ctx context.Context) (lost int64) {
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count.Waiting
}

func (w *worker) stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}
