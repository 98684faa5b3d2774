package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A mute is a proxy to a server. While it is mute, it drops the server's responses.
type mute struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	mute  bool
	conns []net.Conn
	heard chan struct{} // a response was dropped
}

func newMute(t *testing.T, to string) *mute {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mute{listener: l, to: to, heard: make(chan struct{}, 1)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { m.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		m.cut()
		all.Wait()
	})
	return m
}

func (m *mute) serve(c net.Conn) {
	s, err := net.Dial("tcp", m.to)
	if err != nil {
		c.Close()
		return
	}
	m.mu.Lock()
	m.conns = append(m.conns, c, s)
	m.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(s, c)
		s.Close()
	})
	_, _ = io.Copy(unheard{c, m}, s)
	c.Close()
	both.Wait()
}

// unheard writes the responses to one client.
type unheard struct {
	net.Conn
	m *mute
}

func (a unheard) Write(b []byte) (int, error) {
	a.m.mu.Lock()
	mute := a.m.mute
	a.m.mu.Unlock()
	if !mute {
		return a.Conn.Write(b)
	}
	select {
	case a.m.heard <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (m *mute) set(mute bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mute = mute
}

// cut closes all connections.
func (m *mute) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		c.Close()
	}
	m.conns = nil
}

// If the response to a commit is lost, the request is refused with its ID, and the same key finds it.
func TestTheAnswerOfACommitIsLost(t *testing.T) {
	db := servers.Postgres(t)
	m := newMute(t, db.Addr())
	o := townAt(t, db, strings.Replace(db.PostgresURL(), db.Addr(), m.listener.Addr().String(), 1))
	o.init()
	w := o.weir()
	id := func(text string) string {
		var is struct {
			ID    string
			Error struct{ Details struct{ ID string } }
		}
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			t.Fatal(err, text)
		}
		return is.ID + is.Error.Details.ID
	}
	lost := 0
	for n := 0; lost < 3 && n < 100; n++ {
		key := fmt.Sprint("m", n)
		if resp, text := o.send(w, key+" before", "respond-async"); resp.StatusCode != http.StatusAccepted { // its connection is in use, and needs no new one
			t.Fatal(resp.Status, text)
		}
		m.set(true)
		resp, text := o.send(w, key, "respond-async")
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || id(text) == "" {
			t.Fatalf("%s %v %s", resp.Status, resp.Header, text)
		}
		m.set(false)
		m.cut()
		answer, _ := o.send(w, key, "respond-async")
		tries := 0
		for ; answer.StatusCode == http.StatusServiceUnavailable && tries < 30; tries++ { // on a slow machine
			answer, _ = o.send(w, key, "respond-async")
		}
		if answer.StatusCode/100 != 2 {
			t.Fatal(answer.Status)
		}
		if tries == 0 && answer.Header.Get("Idempotency-Replayed") == "true" { // the commit had succeeded
			lost++
			if first, again := id(text), found(o, w, key); first != again {
				t.Errorf("%s: refused as %s, and known as %s", key, first, again)
			}
		}
	}
	if lost < 3 {
		t.Errorf("%d of what was refused had been stored", lost)
	}
}

// found returns the ID of the delivery under a key.
func found(o *town, w *Running, key string) string {
	_, text := o.send(w, key, "respond-async")
	var is struct{ ID string }
	if err := json.Unmarshal([]byte(text), &is); err != nil {
		o.Fatal(err)
	}
	return is.ID
}
