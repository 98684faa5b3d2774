//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package redisstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// counts is a script that returns how often it ran.
var counts = newScript("return '\\248' .. redis.call('incr', KEYS[1])")

// run runs counts in a call that runs alone and may use its own connection.
func run(c *Store) (int, error) {
	text, err := c.client.run(brief{context.Background()}, counts, [][]byte{[]byte("k")}, [][]byte{[]byte("a")}, nil)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text[1:]))
}

// A brief is a context whose deadline is always less than a second ahead. It never ends, so a busy machine does not
// cancel a test's call.
type brief struct{ context.Context }

func (brief) Deadline() (time.Time, bool) { return time.Now().Add(mostAlone - time.Millisecond), true }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not within 10 seconds", what)
}

// has reports whether the numbers of connections match: a spare one, shared ones, and own ones for calls that run
// alone.
func (d *dialer) has(spare bool, shared, own int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		if c.own == nil {
			shared--
		} else {
			own--
		}
	}
	for _, n := range d.nodes {
		if (n.spare != nil) != spare {
			return false
		}
	}
	return shared == 0 && own == 0
}

// soonClient returns a client that has a shared connection and one for calls that run alone, which was used once.
func soonClient(t *testing.T, url string) *Store {
	t.Helper()
	c, err := Open(url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	eventually(t, "an answer", func() bool { _, err := run(c); return err == nil })
	settled(t, c)
	if _, err := run(c); err != nil {
		t.Fatal(err)
	}
	if !c.client.dialer.has(false, 1, 1) {
		t.Fatal("a call that was alone has no connection to itself")
	}
	return c
}

// settled waits until the client has prepared all its connections.
func settled(t *testing.T, c *Store) {
	t.Helper()
	eventually(t, "two connections", func() bool { return c.client.dialer.has(true, 1, 0) || c.client.dialer.has(false, 1, 1) })
}

// loseAll makes the server close all connections and waits until it has. CLIENT KILL responds before that.
func loseAll(t *testing.T, srv *servers.Server) {
	t.Helper()
	list := func() (ids []string) {
		clients, err := srv.Do("CLIENT", "LIST", "TYPE", "normal")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range strings.Fields(clients) {
			if strings.HasPrefix(f, "id=") {
				ids = append(ids, f)
			}
		}
		return ids
	}
	before := list()
	if _, err := srv.Do("CLIENT", "KILL", "TYPE", "normal"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connections closed", func() bool {
		now := list()
		return !slices.ContainsFunc(before, func(id string) bool { return slices.Contains(now, id) })
	})
}

// All connections end between two calls. The next calls succeed, and the server executes each once.
func TestConnectionsThatAreLostBetweenCallsCostNone(t *testing.T) {
	srv := servers.Redis(t)
	c := soonClient(t, srv.URL())
	for round := range 5 {
		before, err := run(c)
		if err != nil {
			t.Fatal(err)
		}
		loseAll(t, srv)
		eventually(t, "a spare connection", func() bool { return c.client.dialer.has(true, 0, 1) })
		for i := range 3 {
			if got, err := run(c); err != nil || got != before+i+1 {
				t.Fatalf("round %d: call %d was carried out as number %d, %v", round, i, got, err)
			}
			settled(t, c)
		}
		if _, err := run(c); err != nil || !c.client.dialer.has(false, 1, 1) {
			t.Fatalf("round %d: %v; want a connection for calls that are alone again", round, err)
		}
	}
}

// A server is demoted for a moment. Only the refused calls fail, and no call whose response is dropped is executed.
func TestAServerThatIsAPrimaryAgainDropsNoAnswer(t *testing.T) {
	old := servers.Redis(t)
	next := servers.Replica(t, old)
	c := soonClient(t, old.URL())
	c.client.dialer.age()
	before, err := run(c)
	if err != nil {
		t.Fatal(err)
	}
	next.CaughtUp(old) // otherwise the server would copy the complete data set when it follows, and be empty for a moment
	next.Promote()
	old.Follow(next)
	if _, err := run(c); err == nil {
		t.Fatal("a replica counts")
	}
	old.Promote()
	settled(t, c)
	for i := range 3 {
		if got, err := run(c); err != nil || got != before+i+1 {
			t.Fatalf("call %d was carried out as number %d of %d, %v", i, got, before, err)
		}
		settled(t, c)
	}
}

// age makes all connections old enough that a refusal ends them.
func (d *dialer) age() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		if c.own != nil { // no goroutine reads it now
			c.made = c.made.Add(-2 * longEnough)
		}
	}
}

// A conn detects every cause that makes it unusable before it sends anything.
func TestNothingIsSentOverAConnectionThatEnded(t *testing.T) {
	for name, spoil := range map[string]func(c *conn, server net.Conn){
		"it was left":       func(c *conn, _ net.Conn) { c.failed = errDemoted },
		"it was closed":     func(_ *conn, server net.Conn) { server.Close() },
		"it was reset":      func(_ *conn, server net.Conn) { server.(*net.TCPConn).SetLinger(0); server.Close() },
		"it has unasked":    func(_ *conn, server net.Conn) { server.Write([]byte("+unasked\r\n")) },
		"it is closed here": func(c *conn, _ net.Conn) { c.Conn.Close() },
	} {
		client, server := loopback(t)
		d := newDialer(time.Second)
		d.reach = nowhere
		raw, err := d.hand(client, newPeek(client), "a:1", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := raw.(*conn)
		if c.own.ended() {
			t.Errorf("%s: before it was", name)
		}
		spoil(c, server)
		eventually(t, name, func() bool { return c.failed != nil || c.own.ended() })
		var down *errDown
		if n, err := c.Write([]byte("PING\r\n")); n != 0 || !errors.As(err, &down) {
			t.Errorf("%s: wrote %d bytes, %v", name, n, err)
		}
		c.Close()
		d.cancel()
		d.close()
	}
}

func TestALookAllocatesNothing(t *testing.T) {
	client, _ := loopback(t)
	p := newPeek(client)
	if n := testing.AllocsPerRun(100, func() { p.ended() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPeek(b *testing.B) {
	client, _ := loopback(b)
	p := newPeek(client)
	for b.Loop() {
		if p.ended() {
			b.Fatal("ended")
		}
	}
}

// loopback returns both ends of a connection.
func loopback(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// A connection may notice the deadline before the call's context ends. The error is then the same, and the call
// counts as abandoned.
func TestTheDeadlineOfAConnectionIsThatOfTheCall(t *testing.T) {
	if err := explain(t.Context(), context.DeadlineExceeded); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("got %v", err)
	}
	d := newDialer(time.Second)
	d.leave(t.Context(), context.DeadlineExceeded)
	if d.abandoned.Load() != 1 {
		t.Error("it does not count")
	}
}
