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

// A dialer makes the connections of a client. It dials for callers in the background: a call
// that comes while there is no connection fails at once.
type dialer struct {
	timeout time.Duration
	replies *replies
	reach   func(ctx context.Context, addr string, nd *net.Dialer, config *tls.Config) (net.Conn, error)

	calls     atomic.Int64 // under way
	abandoned atomic.Int64 // that ended before their answer, since something was read

	mu     sync.Mutex
	nodes  map[string]*node
	open   map[*conn]struct{}
	closed bool
	wg     sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

// A node is a server as the dialer knows it.
type node struct {
	spare  *spare
	tried  chan struct{} // closed when it was tried for the first time
	trying bool
	asked  time.Time // when a caller asked for it last
	err    error     // of the latest try
	said   error     // by the server, when it was demoted
	saidAt time.Time
}

const (
	mostCalls     = 1500                   // that are under way at once
	ringScale     = 11                     // of rueidis: room for 2,048 calls
	mostAbandoned = 400                    // before the connection is given up
	stalled       = 100 * time.Millisecond // without a word of the server to those who wait

	soonest  = 5 * time.Millisecond // between two tries to connect
	latest   = 500 * time.Millisecond
	interest = time.Minute // how long one goes on trying for nobody
)

var (
	errBusy   = fmt.Errorf("too many calls (%d) are waiting for the server: use leases, or fewer callers", mostCalls)
	errClosed = errors.New("the store is closed")
)

// errDown is the error of a call for which there is no connection.
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

// enter begins a call, leave ends it.
func (d *dialer) enter() error {
	if d.calls.Add(1) > mostCalls {
		d.calls.Add(-1)
		return errBusy
	}
	return nil
}

// alone reports whether one call is under way, or none.
func (d *dialer) alone() bool { return d.calls.Load() <= 1 }

// leave gives up connections on which nothing has been heard for some time, though
// somebody waits: what waits in the client for the server would only become more.
func (d *dialer) leave(ctx context.Context, err error) {
	d.calls.Add(-1)
	if err == nil || ctx.Err() == nil && err != context.DeadlineExceeded { // a connection of its own is told first
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

// dial is what the client calls.
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

// ready is a connection that is there, or an error and one that will be.
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

// reserve takes the spare connection, if there is one. A call that is alone has it only beside one that is shared,
// over which it goes otherwise. Another call waits for the first try to reach a node, which a cluster has just named;
// it may wait as long as its context lasts.
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

// try starts to connect to a node, unless that is going on. The lock is held.
func (d *dialer) try(n *node, addr string, nd *net.Dialer, config *tls.Config) {
	if n.trying || n.spare != nil || d.closed {
		return
	}
	n.trying = true
	d.wg.Go(func() { d.keepTrying(n, addr, nd, config) })
}

// keepTrying connects, soon if the server has just gone, and seldom if it has been away for
// long. It gives up when nobody has asked for some time.
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

// why is what is known of why there is no connection. The dialer's lock is held.
func (n *node) why() error {
	if n.err == nil && time.Since(n.saidAt) < interest {
		return n.said
	}
	return n.err
}

// known says that the node was tried. The dialer's lock is held.
func (n *node) known() {
	select {
	case <-n.tried:
	default:
		close(n.tried)
	}
}

// pauseAfter is how long to wait for the next try when the server has been away for so long.
func pauseAfter(away time.Duration) time.Duration { return min(max(soonest, away/64), latest) }

// close ends what the dialer does. Connections that the client has are its own.
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
