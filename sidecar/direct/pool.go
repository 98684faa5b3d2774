package direct

import (
	"slices"
	"sync"
	"time"
)

// A pool keeps idle connections, and the requests that wait for one. It reuses the most recently used connection
// first, so that surplus connections expire.
type pool struct {
	mu      sync.Mutex
	conns   []*conn     // oldest first
	waiting []*waiter   // in order of arrival
	timer   *time.Timer // checks conns; nil while there are none
}

// lookAfter is the interval between checks of idle connections, which release those that the upstream has closed.
const lookAfter = 5 * time.Second

// A waiter is a request whose connection is being made.
type waiter struct {
	address string
	idle    bool           // also takes a connection that becomes idle
	got     chan connected // capacity 1
}

// connected is the result of a wait.
type connected struct {
	conn *conn
	used bool // it was idle
	err  error
}

// take returns an idle connection without any activity since it became idle. It returns nil if there is none. It
// skips connections that were closed or have received data, because the data could be taken for the next response.
func (p *pool) take(address string) *conn {
	for {
		c := p.last(address)
		if c == nil || c.probe.silent() {
			return c
		}
		_ = c.net.Close()
	}
}

func (p *pool) last(address string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.conns) - 1; i >= 0; i-- {
		if c := p.conns[i]; c.address == address {
			p.conns = slices.Delete(p.conns, i, i+1)
			return c
		}
	}
	return nil
}

// wait registers a waiter, which give or put will serve.
func (p *pool) wait(w *waiter) {
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
}

// give ends a wait. It returns false if the wait had ended before.
func (p *pool) give(w *waiter, c connected) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, w)
	if i < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	w.got <- c
	return true
}

// leave cancels a wait, and returns what the waiter got nevertheless.
func (p *pool) leave(w *waiter) (got connected, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return connected{}, false
	}
	return <-w.got, true
}

// put keeps a connection for the next request, or gives it to the first waiter. It reports whether it did.
func (p *pool) put(c *conn, most int, idle time.Duration) bool {
	if !c.probe.can() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.waiting, func(w *waiter) bool { return w.idle && w.address == c.address }); i >= 0 && c.probe.silent() {
		p.waiting[i].got <- connected{conn: c, used: true}
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return true
	}
	if len(p.conns) >= most {
		return false
	}
	c.since = time.Now()
	p.conns = append(p.conns, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(min(idle, lookAfter), func() { p.sweep(idle) })
	}
	return true
}

// sweep closes connections that have been idle for the given time, and connections that the upstream has closed.
func (p *pool) sweep(idle time.Duration) {
	p.mu.Lock()
	var gone []*conn
	now := time.Now()
	p.conns = slices.DeleteFunc(p.conns, func(c *conn) bool {
		ends := now.Sub(c.since) >= idle || !c.probe.silent()
		if ends {
			gone = append(gone, c)
		}
		return ends
	})
	switch {
	case p.timer == nil:
	case len(p.conns) == 0:
		p.timer.Stop()
		p.timer = nil
	default:
		p.timer.Reset(min(lookAfter, max(0, p.conns[0].since.Add(idle).Sub(now))))
	}
	p.mu.Unlock()
	for _, c := range gone {
		_ = c.net.Close()
	}
}
