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

// A worker sends messages to one target, one after the other.
type worker struct {
	target Target
	config *Config
	box    *outbox.Outbox[letter]

	mu    sync.Mutex
	count Stats
}

// A letter is a message and how often it was tried to send it.
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

// take takes a message, or drops it if there is no room.
func (w *worker) take(m Message) {
	w.mu.Lock()
	w.count.Waiting++
	w.mu.Unlock()
	w.box.Put(letter{Message: m})
}

// longestHint is how long a target may have a message wait: others wait behind it.
const longestHint = 5 * time.Minute

// deliver makes one attempt to send a message, and says when to make another.
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

// again is how long to wait before the next attempt, if there is one.
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

// sent counts a message that is done with.
func (w *worker) sent(count func(*Stats)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.Waiting--
	count(&w.count)
}

// send survives a target that panics.
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
