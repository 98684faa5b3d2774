package breakers

import (
	"context"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A mailbox collects notes from the breakers for the loop.
type mailbox struct {
	mu    sync.Mutex
	notes map[string]*note
	news  bool
	wake  context.CancelFunc // ends the sleep of the loop
}

// A note is the events of a breaker since the loop last read its notes.
type note struct {
	failed int64
	since  time.Duration // time of the first of them
	hint   outcome.Hint  // of the last failure
	wanted time.Duration // when the breaker last refused a call that could have probed; 0 if it did not
}

// Failed, Wanted and Moved implement breaker.Fleet. The breakers call them.
func (b *Breakers) Failed(key string, now time.Duration, h outcome.Hint) {
	b.mail.leave(key, func(n *note) {
		if n.failed == 0 {
			n.since = now
		}
		n.failed++
		n.hint = h
	})
}

func (b *Breakers) Wanted(key string, now time.Duration) {
	b.mail.leave(key, func(n *note) { n.wanted = max(1, now) })
}

func (b *Breakers) Moved(key string) { b.mail.leave(key, func(*note) {}) }

func (m *mailbox) leave(key string, write func(*note)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.notes[key]
	if n == nil {
		if m.notes == nil {
			m.notes = make(map[string]*note)
		}
		n = new(note)
		m.notes[key] = n
	}
	write(n)
	m.news = true
	if m.wake != nil {
		m.wake()
	}
}

// empty removes and returns all notes.
func (m *mailbox) empty() map[string]*note {
	m.mu.Lock()
	defer m.mu.Unlock()
	notes := m.notes
	m.notes, m.news = nil, false
	return notes
}

// onNews sets the function that the next note calls. It reports whether there are no notes yet.
func (m *mailbox) onNews(wake context.CancelFunc) (none bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake = wake
	return !m.news
}
