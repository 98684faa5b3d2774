package run

import (
	"net"
	"sync"
)

// An idleListener accepts nothing until it is closed.
type idleListener struct {
	addr  net.Addr
	ended chan struct{}
	once  sync.Once
}

func newIdleListener(addr net.Addr) *idleListener {
	return &idleListener{addr: addr, ended: make(chan struct{})}
}

func (l *idleListener) Accept() (net.Conn, error) {
	<-l.ended
	return nil, net.ErrClosed
}

func (l *idleListener) Close() error {
	l.once.Do(func() { close(l.ended) })
	return nil
}

func (l *idleListener) Addr() net.Addr { return l.addr }
