package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed1158cd35/weir/delivery"
)

// bounds of a connection.
const (
	idleAtMost   = time.Minute
	oldest       = time.Hour   // so that a name that leads elsewhere is followed
	askedAfter   = time.Second // idle for longer, it is asked whether it still is one
	mostPrepared = 256
)

// A pool has connections for one asker each, at most a number of them. The one that was used last is used first, so
// that what is not needed becomes idle.
type pool struct {
	config *pgconn.Config
	taken  chan struct{} // holds one for each asker that has a connection
	stop   chan struct{}
	once   sync.Once

	mu   sync.Mutex
	idle []*conn // the one used last is the last
}

// A conn is one of a pool. It belongs to whoever has taken it.
type conn struct {
	*pgconn.PgConn
	made, used time.Time
	prepared   map[string]string // names of statements
	names      int
}

func newPool(c *pgconn.Config, most int) *pool {
	return &pool{config: c, taken: make(chan struct{}, most), stop: make(chan struct{})}
}

// take gives a connection, which must be put back. It waits for one.
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

// found is an idle connection that still is one, or else a new one.
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

// pop is an idle connection, or nil.
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

// put gives a connection back. What has been idle for too long is closed.
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

// drop closes what is idle: what it has prepared is for other tables, or it leads to a server that is no longer asked.
func (p *pool) drop() {
	p.mu.Lock()
	over := p.idle
	p.idle = nil
	p.mu.Unlock()
	hangUp(over)
}

// close waits until all connections are back.
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
