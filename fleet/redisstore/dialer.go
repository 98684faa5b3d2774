package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A dialer makes the connections of a client. It dials in the background, so a call without a connection fails
// immediately.
type dialer struct {
	timeout time.Duration
	replies *replies
	reach   func(ctx context.Context, addr string, nd *net.Dialer, config *tls.Config) (net.Conn, error)

	calls     atomic.Int64 // in progress
	abandoned atomic.Int64 // calls that ended without a response since the last read

	mu     sync.Mutex
	nodes  map[string]*node
	open   map[*conn]struct{}
	closed bool
	wg     sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

// A node is a server and the state of its connections.
type node struct {
	spare  *spare
	tried  chan struct{} // closed after the first attempt
	trying bool
	asked  time.Time // time of the last request by a call
	err    error     // of the latest attempt
	said   error     // by the server when it was demoted
	saidAt time.Time
}

const (
	mostCalls     = 1500                   // in progress at once
	ringScale     = 11                     // of rueidis: room for 2,048 calls
	mostAbandoned = 400                    // before the connection is closed
	stalled       = 100 * time.Millisecond // silence of the server, while calls wait, after which the connection is closed

	soonest  = 5 * time.Millisecond // shortest pause between two attempts to connect
	latest   = 500 * time.Millisecond
	interest = time.Minute // how long attempts continue when no call asks for a connection
)

var (
	errBusy   = fmt.Errorf("too many calls (%d) are waiting for the server: use leases, or fewer callers", mostCalls)
	errClosed = errors.New("the store is closed")
)

// errDown is the error of a call without a connection.
type errDown struct {
	addr string
	err  error
}

func (e *errDown) Unwrap() error { return e.err }
func (e *errDown) Error() string {
	if e.err == nil {
		return "not connected to " + e.addr + " yet; retrying"
	}
	return fmt.Sprintf("not connected to %s; retrying, last attempt: %v", e.addr, e.err)
}

func newDialer(timeout time.Duration) *dialer {
	d := &dialer{timeout: timeout, replies: newReplies(), reach: dialTCP, nodes: make(map[string]*node), open: make(map[*conn]struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// enter begins a call. leave ends it.
func (d *dialer) enter() error {
	if d.calls.Add(1) > mostCalls {
		d.calls.Add(-1)
		return errBusy
	}
	return nil
}

// alone reports whether at most one call is in progress.
func (d *dialer) alone() bool { return d.calls.Load() <= 1 }

// leave closes connections that have been silent for some time while calls wait. Otherwise the requests that wait
// in rueidis would accumulate.
func (d *dialer) leave(ctx context.Context, err error) {
	d.calls.Add(-1)
	if err == nil || ctx.Err() == nil && err != context.DeadlineExceeded { // a call on its own connection may see the deadline before ctx does
		return
	}
	many := d.abandoned.Add(1) >= mostAbandoned
	now := time.Now().UnixNano()
	d.mu.Lock()
	var dead []*conn
	for c := range d.open {
		if since := c.waiting.Load(); since != 0 && (many || now-since > int64(stalled)) {
			dead = append(dead, c)
		}
	}
	d.mu.Unlock()
	for _, c := range dead {
		c.Close()
	}
}

// dial is rueidis's dial function.
func (d *dialer) dial(ctx context.Context, addr string, nd *net.Dialer, config *tls.Config) (net.Conn, error) {
	k := sendingOf(ctx)
	if k == nil {
		c, err := d.connect(ctx, addr, nd, config)
		if err != nil {
			return nil, err
		}
		return d.hand(c, nil, addr, nd, config)
	}
	k.dialed = true
	s, err := d.ready(k, addr, nd, config)
	if err != nil {
		return nil, err
	}
	if !k.alone {
		return d.hand(s.Conn, nil, addr, nd, config)
	}
	return d.hand(s.Conn, s.peek, addr, nd, config)
}

// ready returns the spare connection. Without one it returns an error and starts to connect.
func (d *dialer) ready(k *sending, addr string, nd *net.Dialer, config *tls.Config) (*spare, error) {
	if s := d.reserve(k, addr, nd, config); s != nil && s.free() {
		return s, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.node(addr)
	d.try(n, addr, nd, config)
	return nil, &errDown{addr, n.why()}
}

// reserve takes the spare connection, if there is one. A call that runs alone takes it only if there is also a
// shared connection, which it uses otherwise. Other calls wait for the first attempt to reach a node that the
// cluster has just named, at most until their context ends.
func (d *dialer) reserve(k *sending, addr string, nd *net.Dialer, config *tls.Config) *spare {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.node(addr)
	n.asked = time.Now()
	if k.alone && (n.spare == nil || n.spare.peek == nil || !d.shared(addr)) {
		return nil
	}
	if n.spare == nil {
		d.try(n, addr, nd, config)
		d.mu.Unlock()
		select {
		case <-n.tried:
		case <-k.Done():
		}
		d.mu.Lock()
	}
	s := n.spare
	n.spare = nil
	return s
}

func (d *dialer) node(addr string) *node {
	n := d.nodes[addr]
	if n == nil {
		n = &node{tried: make(chan struct{})}
		d.nodes[addr] = n
	}
	return n
}

// try starts to connect to a node, unless an attempt is in progress. The caller holds the lock.
func (d *dialer) try(n *node, addr string, nd *net.Dialer, config *tls.Config) {
	if n.trying || n.spare != nil || d.closed {
		return
	}
	n.trying = true
	d.wg.Go(func() { d.keepTrying(n, addr, nd, config) })
}

// keepTrying connects and repeats failed attempts, with pauses that grow with the outage. It gives up when no call
// has asked for a connection for some time.
func (d *dialer) keepTrying(n *node, addr string, nd *net.Dialer, config *tls.Config) {
	for begin := time.Now(); ; {
		c, err := d.connect(d.ctx, addr, nd, config)
		d.mu.Lock()
		n.err = err
		n.known()
		idle := time.Since(n.asked) > interest && time.Since(begin) > interest
		if err == nil || idle || d.closed || d.ctx.Err() != nil {
			n.trying = false
			switch {
			case d.closed && c != nil:
				c.Close()
			case c != nil:
				d.keep(n, c, addr, nd, config)
			}
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		select {
		case <-d.ctx.Done():
		case <-time.After(pauseAfter(time.Since(begin))):
		}
	}
}

// why returns why there is no connection. The caller holds the dialer's lock.
func (n *node) why() error {
	if n.err == nil && time.Since(n.saidAt) < interest {
		return n.said
	}
	return n.err
}

// known marks the node as tried. The caller holds the dialer's lock.
func (n *node) known() {
	select {
	case <-n.tried:
	default:
		close(n.tried)
	}
}

// pauseAfter returns the pause before the next attempt, given how long the server has been unreachable.
func pauseAfter(away time.Duration) time.Duration { return min(max(soonest, away/64), latest) }

// close stops the dialer's goroutines and closes spare connections. rueidis closes the connections in use.
func (d *dialer) close() {
	d.mu.Lock()
	d.closed = true
	for _, n := range d.nodes {
		if n.spare != nil {
			n.spare.Close()
		}
	}
	d.mu.Unlock()
	d.cancel()
	d.wg.Wait()
}
