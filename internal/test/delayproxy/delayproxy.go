// Package delayproxy puts a network of any latency between a client and a server in tests. A Proxy accepts TCP
// connections, forwards them to a server, and delays what passes in each direction.
//
//	p := delayproxy.New(t, server.Addr, delayproxy.Delay{Each: 20 * time.Millisecond}) // a round trip of 40ms
//	client := dial(p.Addr())
//
// In a bubble of testing/synctest, Serve does the same between an in-memory listener and a dial function, in virtual
// time:
//
//	p := delayproxy.Serve(network.Listen("far.test"), dial, delayproxy.Delay{Each: 75 * time.Millisecond})
//	defer p.Close()
package delayproxy

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// A Delay is how late a Proxy forwards data. The zero Delay forwards data immediately.
type Delay struct {
	Each   time.Duration // of every chunk, in each direction: a round trip takes twice as long
	Jitter time.Duration // added to Each: a random time from 0 to Jitter. Data keeps its order.
	First  time.Duration // added to the first chunk from the client of a connection, as a cold TLS handshake does
}

// A Proxy forwards connections. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	dial     func(ctx context.Context) (net.Conn, error)
	ctx      context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu    sync.Mutex
	delay Delay
	cut   bool
	conns map[net.Conn]struct{}
}

// A TB is the part of testing.TB that New uses.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// New starts a proxy on a loopback port for the server at target. The end of the test closes it.
func New(t TB, target string, d Delay) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := Serve(l, func(ctx context.Context) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", target)
	}, d)
	t.Cleanup(p.Close)
	return p
}

// Serve starts a proxy that accepts connections from l and forwards them to the connections that dial returns. Close
// closes l.
func Serve(l net.Listener, dial func(ctx context.Context) (net.Conn, error), d Delay) *Proxy {
	ctx, stop := context.WithCancel(context.Background())
	p := &Proxy{listener: l, dial: dial, ctx: ctx, stop: stop, delay: d, conns: make(map[net.Conn]struct{})}
	p.running.Go(p.accept)
	return p
}

// Addr is the address at which the proxy accepts connections.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set changes the delay of everything that arrives from now on.
func (p *Proxy) Set(d Delay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Cut closes all connections and refuses new ones until Heal.
func (p *Proxy) Cut() { p.setCut(true) }

// Heal lets connections through again after Cut.
func (p *Proxy) Heal() { p.setCut(false) }

func (p *Proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

// Close ends all connections and waits until the proxy has ended.
func (p *Proxy) Close() {
	p.stop()
	_ = p.listener.Close()
	p.setCut(true)
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.forward(c) })
	}
}

// forward forwards one connection until either side closes it.
func (p *Proxy) forward(client net.Conn) {
	defer client.Close()
	if !p.keep(client) {
		return
	}
	defer p.forget(client)
	server, err := p.dial(p.ctx)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(server) {
		return
	}
	defer p.forget(server)
	p.mu.Lock()
	first := p.delay.First
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, client, first) })
	both.Go(func() { p.copy(client, server, 0) })
	both.Wait()
}

// keep registers a connection. It reports false if the proxy is cut.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut {
		p.conns[c] = struct{}{}
	}
	return !p.cut
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// A chunk is data and when it is due.
type chunk struct {
	data []byte
	due  time.Time
}

// copy forwards one direction. It delays data without limiting the rate, because reading continues meanwhile. The end of the
// data closes both sides after the earlier data was sent.
func (p *Proxy) copy(to, from net.Conn, first time.Duration) {
	chunks := make(chan chunk, 1024)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer to.Close()
		defer from.Close()
		for c := range chunks {
			if !p.sleepUntil(c.due) {
				break
			}
			if _, err := to.Write(c.data); err != nil {
				break
			}
		}
		_ = from.Close()
		for range chunks { // the reader must not block
		}
	})
	due := time.Time{}
	for {
		b := make([]byte, 32<<10)
		n, err := from.Read(b)
		if n > 0 {
			if at := time.Now().Add(p.lateness() + first); at.After(due) {
				due = at
			}
			first = 0
			chunks <- chunk{b[:n], due}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	writing.Wait()
}

func (p *Proxy) lateness() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.delay.Each
	if p.delay.Jitter > 0 {
		d += rand.N(p.delay.Jitter)
	}
	return d
}

// sleepUntil reports false if the proxy is closed before.
func (p *Proxy) sleepUntil(at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}
