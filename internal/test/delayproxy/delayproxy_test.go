package delayproxy_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/delayproxy"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// echo returns the data of each connection.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}()
	}
}

func exchange(t *testing.T, c net.Conn, text string) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("received %q, %v; want %q", b, err, text)
	}
	return time.Since(start)
}

func TestProxyDelaysEachDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		near := n.Listen("near.test")
		defer near.Close()
		go echo(near)
		dial := func(ctx context.Context) (net.Conn, error) { return n.Dial(ctx, "tcp", "near.test") }
		p := delayproxy.Serve(n.Listen("far.test"), dial, delayproxy.Delay{Each: 75 * time.Millisecond, First: 200 * time.Millisecond})
		defer p.Close()
		c, err := n.Dial(t.Context(), "tcp", "far.test")
		if err != nil {
			t.Fatal(err)
		}
		if got := exchange(t, c, "hello"); got != 350*time.Millisecond {
			t.Errorf("the first exchange took %v, want 350ms", got)
		}
		if got := exchange(t, c, "hello"); got != 150*time.Millisecond {
			t.Errorf("the second exchange took %v, want 150ms", got)
		}
		p.Set(delayproxy.Delay{Each: time.Millisecond, Jitter: 5 * time.Millisecond})
		for range 20 {
			if got := exchange(t, c, "hello"); got < 2*time.Millisecond || got > 12*time.Millisecond {
				t.Errorf("an exchange with jitter took %v, want 2ms to 12ms", got)
			}
		}
		p.Cut()
		if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
			t.Error("a connection outlived Cut")
		}
		p.Heal()
		if c, err = n.Dial(t.Context(), "tcp", "far.test"); err != nil {
			t.Fatal(err)
		}
		exchange(t, c, "again")
	})
}

func TestProxyForwardsTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go echo(l)
	p := delayproxy.New(t, l.Addr().String(), delayproxy.Delay{Each: time.Millisecond})
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := exchange(t, c, "hello"); got < 2*time.Millisecond {
		t.Errorf("an exchange took %v, want 2ms at least", got)
	}
}
