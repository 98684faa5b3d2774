package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/outbox"
	"github.com/seed1158cd35/weir/observe"
)

// A Target receives messages. A Notifier sends messages to a Target one at a time.
type Target interface {
	// Name is the target's name in logs. It must not contain a secret.
	Name() string
	// Send makes one attempt to send the message. The error must not contain a secret. A *SendError specifies whether and when to
	// try again.
	Send(ctx context.Context, m Message) error
}

// A SendError is the reason why a message was not sent.
type SendError struct {
	Target string
	Status int           // the HTTP status; 0 without a response
	After  time.Duration // the earliest next attempt
	Final  bool          // no further attempt
	Err    error         // nil if the status is the reason
}

func (e *SendError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: status %d", e.Target, e.Status)
	}
	return fmt.Sprintf("%s: %v", e.Target, e.Err)
}

func (e *SendError) Unwrap() error { return e.Err }

// A worker sends messages to one target, one at a time.
type worker struct {
	target Target
	config *Config
	box    *outbox.Outbox[letter]

	mu    sync.Mutex
	count Stats
}

// A letter is a message and the number of attempts made.
type letter struct {
	Message
	attempts int
}

func newWorker(t Target, c *Config) *worker {
	w := &worker{target: t, config: c}
	w.count.Target = t.Name()
	w.box = outbox.New(outbox.Config[letter]{Most: c.Queue + 1, Send: w.deliver, Dropped: func(*letter) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.count.Waiting--
		w.count.Dropped++
	}})
	return w
}

// take queues a message, or drops it if the queue is full.
func (w *worker) take(m Message) {
	w.mu.Lock()
	w.count.Waiting++
	w.mu.Unlock()
	w.box.Put(letter{Message: m})
}

// longestHint is the longest delay that a target may request: other messages wait behind this one.
const longestHint = 5 * time.Minute

// deliver makes one attempt to send a message and returns the delay before the next.
func (w *worker) deliver(ctx context.Context, l *letter) time.Duration {
	err := w.send(ctx, l.Message)
	if err == nil {
		w.sent(func(s *Stats) { s.Sent++ })
		return 0
	}
	l.attempts++
	if wait, ok := w.again(l, err); ok {
		return wait
	}
	w.sent(func(s *Stats) { s.Failed++ })
	if w.config.Log != nil {
		w.config.Log.Warn("message not sent", "target", w.target.Name(), "kind", string(l.Kind), "resolved", l.Resolved,
			"upstream", l.Upstream, "error", observe.Error(err))
	}
	return 0
}

// again returns the delay before the next attempt. ok is false if there is none.
func (w *worker) again(l *letter, err error) (wait time.Duration, ok bool) {
	wait = time.Second << min(l.attempts-1, 5)
	wait = wait/2 + rand.N(wait/2)
	if e, ok := errors.AsType[*SendError](err); ok {
		if e.Final || e.After > longestHint {
			return 0, false
		}
		wait = max(wait, e.After)
	}
	return wait, l.attempts < w.config.Attempts
}

// sent counts a finished message.
func (w *worker) sent(count func(*Stats)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.Waiting--
	count(&w.count)
}

// send recovers from a target that panics.
func (w *worker) send(ctx context.Context, m Message) (err error) {
	ctx, cancel := context.WithTimeout(ctx, w.config.Timeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = &SendError{Target: w.target.Name(), Final: true, Err: errors.New("it panicked")}
		}
	}()
	return w.target.Send(ctx, m)
}

func (w *worker) stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}
