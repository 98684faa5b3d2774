package notify

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A box keeps the messages that it receives.
type box struct {
	mu   sync.Mutex
	got  []Message
	send func(ctx context.Context, n int) error // returns the result of the n-th attempt, from 1; nil means success
	n    int
}

func (b *box) Name() string { return "box" }

func (b *box) Send(ctx context.Context, m Message) error {
	b.mu.Lock()
	b.n++
	n, send := b.n, b.send
	b.mu.Unlock()
	if send != nil {
		if err := send(ctx, n); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, m)
	return nil
}

func (b *box) messages() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Message(nil), b.got...)
}

// story formats the messages: "at 0s: exhausted s3 put, 0 suppressed".
func (b *box) story(began time.Time) (all []string) {
	for _, m := range b.messages() {
		over := ""
		if m.Resolved {
			over = "resolved "
		}
		all = append(all, fmt.Sprintf("%v: %s%s %s +%d", m.At.Sub(began), over, m.Kind, m.Where(), m.Suppressed))
	}
	return all
}

func start(t testing.TB, c Config) *Notifier {
	t.Helper()
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = n.Close(ctx) // for a test that did not close it
	})
	return n
}

var put = weir.Subject{Upstream: "s3", Operation: "put", ID: "4711", Key: "tenant=acme"}

func exhausted(s weir.Subject) weir.GaveUp {
	return weir.GaveUp{Subject: s, Attempts: 3, Outcome: outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown"}, Why: retry.ErrAttempts}
}
