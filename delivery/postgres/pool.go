package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed1158cd35/weir/delivery"
)

// Limits of connections.
const (
	idleAtMost   = time.Minute
	oldest       = time.Hour   // so that changes in DNS take effect
	askedAfter   = time.Second // after this idle time, a connection is pinged before use
	mostPrepared = 256
)

// A pool holds a limited number of connections, each for one user at a time. It reuses the most recently used one
// first, so that surplus connections become idle.
type pool struct {
	config *pgconn.Config
	taken  chan struct{} // contains one element for each connection in use
	stop   chan struct{}
	once   sync.Once

	mu   sync.Mutex
	idle []*conn // the most recently used one is last
}

// A conn is a connection of a pool. Only the goroutine that has taken it may use it.
type conn struct {
	*pgconn.PgConn
	made, used time.Time
	prepared   map[string]string // names of prepared statements
	names      int
}

func newPool(c *pgconn.Config, most int) *pool {
	return &pool{config: c, taken: make(chan struct{}, most), stop: make(chan struct{})}
}

// take waits for a connection. The caller must put it back.
func (p *pool) take(ctx context.Context) (*conn, error) {
	select {
	case p.taken <- struct{}{}:
	case <-p.stop:
		return nil, delivery.ErrClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a connection: %w", context.Cause(ctx))
	}
	c, err := p.found(ctx)
	if err != nil {
		<-p.taken
	}
	return c, err
}

// found returns an idle connection that still works, or a new one.
func (p *pool) found(ctx context.Context) (*conn, error) {
	for c := p.pop(); c != nil; c = p.pop() {
		if time.Since(c.used) < askedAfter || c.Ping(ctx) == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("asking a connection: %w", context.Cause(ctx))
		}
	}
	is, err := pgconn.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, err
	}
	return &conn{PgConn: is, made: time.Now(), prepared: make(map[string]string)}, nil
}

func (p *pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle) - 1
	if n < 0 {
		return nil
	}
	c := p.idle[n]
	p.idle = p.idle[:n]
	return c
}

// put returns a connection to the pool. It closes connections that were idle for too long.
func (p *pool) put(c *conn) {
	c.used = time.Now()
	var over []*conn
	p.mu.Lock()
	switch {
	case c.IsClosed():
	case c.used.Sub(c.made) > oldest:
		over = append(over, c)
	default:
		p.idle = append(p.idle, c)
	}
	for len(p.idle) > 0 && c.used.Sub(p.idle[0].used) > idleAtMost {
		over = append(over, p.idle[0])
		p.idle = p.idle[1:]
	}
	p.mu.Unlock()
	<-p.taken
	hangUp(over)
}

// drop closes the idle connections: their prepared statements may not match the tables any more, or they lead to a
// server that was replaced.
func (p *pool) drop() {
	p.mu.Lock()
	over := p.idle
	p.idle = nil
	p.mu.Unlock()
	hangUp(over)
}

// close waits until all connections have been returned.
func (p *pool) close() {
	p.once.Do(func() {
		close(p.stop)
		for range cap(p.taken) {
			p.taken <- struct{}{}
		}
		p.drop()
	})
}

func hangUp(all []*conn) {
	ctx, cancel := context.WithTimeout(context.Background(), dialling)
	defer cancel()
	for _, c := range all {
		_ = c.Close(ctx)
	}
}
