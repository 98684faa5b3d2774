package redisstore_test

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A proxy forwards connections to a server. It can close connections when the server responds.
type proxy struct {
	net.Listener
	to   string
	lose atomic.Bool
	wg   sync.WaitGroup
}

func before(t testing.TB, srv *servers.Server) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: srv.Addr()}
	p.wg.Go(p.serve)
	t.Cleanup(func() { l.Close(); p.wg.Wait() })
	return p
}

func (p *proxy) URL() string { return "redis://" + p.Addr().String() }

func (p *proxy) serve() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.carry(c) })
	}
}

func (p *proxy) carry(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	p.wg.Go(func() {
		io.Copy(s, c)
		s.Close()
	})
	b := make([]byte, 64<<10)
	for {
		n, err := s.Read(b)
		if err != nil || p.lose.Load() {
			return
		}
		c.Write(b[:n])
	}
}

func TestLostAnswerIsNotSpentTwice(t *testing.T) {
	srv := servers.Redis(t)
	p := before(t, srv)
	for _, by := range ways {
		s := by(startFull(open(t, p.URL())))
		b := claim(bucketOf("b", 1, time.Hour, 1000), 10)
		before := left(t, s, b)
		a := ask(b)
		a.Copies, a.Settle = 2, []fleet.Settlement{{Rule: b.Rule, Key: "k", Owe: 3}}
		p.lose.Store(true)
		if _, err := within(60*time.Millisecond, func(ctx context.Context) error { return s.Take(ctx, a) }); err == nil {
			t.Fatal("an answer that was lost arrived")
		}
		p.lose.Store(false)
		for range 3 {
			a.Again = true
			eventually(t, "an answer to the repeat", func() bool {
				_, err := within(time.Second, func(ctx context.Context) error { return s.Take(ctx, a) })
				return err == nil
			})
			if a.Granted != 2 {
				t.Errorf("the repeat was granted %d copies, want 2", a.Granted)
			}
		}
		if got := left(t, s, b); got != before-23 {
			t.Errorf("%d left, want %d", got, before-23)
		}
		back := ask(b)
		back.Copies, back.Settle = 0, []fleet.Settlement{{Rule: b.Rule, Key: "k", Back: 4, Mark: a.Grants[0].Mark}}
		take(t, s, back)
		if got := left(t, s, b); got != before-19 {
			t.Errorf("%d left after 4 units returned, want %d", got, before-19)
		}
	}
}

func TestScriptsThatWereFlushedAreSentAgain(t *testing.T) {
	srv := servers.Redis(t)
	for _, by := range ways {
		wantFlushed(t, by(startFull(open(t, srv.URL()))), srv.FlushScripts)
	}
}

func wantFlushed(t *testing.T, s fleet.Store, flush func()) {
	t.Helper()
	b := claim(bucketOf("b", 1, time.Hour, 1000), 1)
	before := left(t, s, b)
	for n := range 10 {
		flush()
		if a := take(t, s, ask(b)); a.Granted != 1 {
			t.Fatalf("call %d: granted %d", n, a.Granted)
		}
		flush()
		if _, _, err := s.Load(t.Context(), group, []string{"a"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := left(t, s, b); got != before-10 {
		t.Errorf("%d left, want %d", got, before-10)
	}
}
