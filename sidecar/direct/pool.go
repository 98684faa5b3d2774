package direct

import (
	"slices"
	"sync"
	"time"
)

// A pool keeps idle connections. The last one that was used is the first to be used again, so that those
// that are too many become old.
type pool struct {
	mu    sync.Mutex
	conns []*conn     // the oldest first
	timer *time.Timer // ends those that are too old; nil while there is none
}

// take is a connection on which nothing has happened since it became idle; nil if there is none. One that
// was closed, or on which something was said that nobody asked for, is not used: that could be taken for
// the answer to the next request.
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

// put keeps a connection, and reports whether it does.
func (p *pool) put(c *conn, most int, idle time.Duration) bool {
	if !c.probe.can() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) >= most {
		return false
	}
	c.since = time.Now()
	p.conns = append(p.conns, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(idle, func() { p.sweep(idle) })
	}
	return true
}

// sweep closes connections that have been idle for so long.
func (p *pool) sweep(idle time.Duration) {
	p.mu.Lock()
	now, old := time.Now(), 0
	for old < len(p.conns) && now.Sub(p.conns[old].since) >= idle {
		old++
	}
	gone := slices.Clone(p.conns[:old])
	p.conns = slices.Delete(p.conns, 0, old)
	switch {
	case p.timer == nil:
	case len(p.conns) == 0:
		p.timer.Stop()
		p.timer = nil
	default:
		p.timer.Reset(p.conns[0].since.Add(idle).Sub(now))
	}
	p.mu.Unlock()
	for _, c := range gone {
		_ = c.net.Close()
	}
}
