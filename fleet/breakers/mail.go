package breakers

import (
	"context"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A mailbox is where breakers leave word for the loop.
type mailbox struct {
	mu    sync.Mutex
	notes map[string]*note
	news  bool
	wake  context.CancelFunc // of a loop that sleeps
}

// A note is what a breaker had to say since the loop last asked.
type note struct {
	failed int64
	since  time.Duration // when the first of them failed
	hint   outcome.Hint  // of the last
	wanted time.Duration // when a call would have been the probe; 0 if none would
}

// Failed, Wanted and Moved are what breakers tell.
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

// empty takes what there is.
func (m *mailbox) empty() map[string]*note {
	m.mu.Lock()
	defer m.mu.Unlock()
	notes := m.notes
	m.notes, m.news = nil, false
	return notes
}

// onNews has the loop woken, or reports that there is news already.
func (m *mailbox) onNews(wake context.CancelFunc) (none bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake = wake
	return !m.news
}
