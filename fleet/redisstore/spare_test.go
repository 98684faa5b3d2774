package redisstore

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A world is a server that a dialer reaches with in-memory connections. It answers each line.
type world struct {
	*dialer
	made []net.Conn // the server's ends
	rude bool       // it closes each connection after its first answer
}

func newWorld() *world {
	w := &world{dialer: newDialer(time.Second)}
	w.reach = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
		client, server := net.Pipe()
		w.mu.Lock()
		w.made = append(w.made, server)
		w.mu.Unlock()
		go func() {
			for r := bufio.NewReader(server); ; {
				if _, err := r.ReadSlice('\n'); err != nil {
					return
				}
				server.Write([]byte("+PONG\r\n"))
				if w.rude {
					server.Close()
				}
			}
		}()
		return client, nil
	}
	return w
}

// ends returns the server's ends of all connections.
func (w *world) ends() []net.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.made)
}

func (w *world) end() {
	w.cancel()
	w.close()
	for _, c := range w.ends() {
		c.Close()
	}
}

// get dials for a call.
func (w *world) get(t *testing.T, alone bool) (net.Conn, error) {
	c, err := w.dial(&sending{Context: t.Context(), alone: alone}, "a:1", nil, nil)
	synctest.Wait()
	return c, err
}

// good returns a shared connection that the client reads.
func (w *world) good(t *testing.T) net.Conn {
	t.Helper()
	c, err := w.get(t, false)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Time{})
	return c
}

func (w *world) spare(looked bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.node("a:1").spare
	if s != nil && looked { // an in-memory connection is not a socket
		s.peek = new(peek)
	}
	return s != nil
}

// All connections end simultaneously, in any order. Before the next call comes, it has a connection again.
func TestAfterALossThereIsAConnectionForTheNextCall(t *testing.T) {
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			defer w.end()
			c := w.good(t)
			ends := w.ends()
			if !first {
				slices.Reverse(ends)
			}
			time.Sleep(time.Hour)
			for _, e := range ends {
				e.Close()
				if e == w.ends()[0] {
					c.Close() // as the client does when its read fails
				}
				synctest.Wait()
			}
			if !w.spare(false) {
				t.Fatalf("the shared one first %v: no connection", first)
			}
			w.good(t)
			if !w.spare(false) {
				t.Errorf("the shared one first %v: no second connection", first)
			}
		})
	}
}

// A spare connection that ended is not returned to a call.
func TestASpareThatEndedIsNotHandedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.end()
		w.good(t)
		w.ends()[1].Close()
		synctest.Wait()
		if w.spare(false) {
			t.Error("it is kept")
		}
		// A call that runs alone does not wait for a new connection, so it does not get this one.
		if _, err := w.get(t, true); err == nil || !w.spare(false) {
			t.Fatalf("%v, and no other is made", err)
		}
		w.ends()[2].Write([]byte("+unasked\r\n"))
		synctest.Wait()
		if w.spare(false) {
			t.Error("it is kept though the server said something that nobody asked for")
		}
	})
}

// The dialer pauses between connections to a server that closes each immediately.
func TestARudeServerIsLeftAloneForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.end()
		w.rude = true
		_, err := w.get(t, false)
		time.Sleep(10*time.Second + latest/2) // between two attempts
		synctest.Wait()
		if n := len(w.ends()); n < 10 || n > 25 {
			t.Errorf("%d connections within 10s (%v)", n, err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if why := w.node("a:1").why(); why == nil {
			t.Error("and nobody is told why")
		}
	})
}

// A call that runs alone gets its own connection only if the client also reads a shared one. Otherwise the next
// beat would have no connection.
func TestTheSharedConnectionComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.end()
		c, err := w.get(t, false)
		if err != nil || !w.spare(true) {
			t.Fatalf("%v; want a second connection", err)
		}
		var down *errDown
		if _, err := w.get(t, true); !errors.As(err, &down) {
			t.Errorf("%v; want none while nobody reads the shared one", err)
		}
		c.SetDeadline(time.Time{})
		if _, err := w.get(t, true); err != nil {
			t.Errorf("%v; want one beside a shared one", err)
		}
		c.Close()
		synctest.Wait()
		w.spare(true)
		if _, err := w.get(t, true); !errors.As(err, &down) {
			t.Errorf("%v; want none after the shared one was lost", err)
		}
		w.good(t)
	})
}

// Calls that run alone do not use a connection that cannot be checked between calls.
func TestOnlyWhatCanBeLookedAtIsForCallsThatAreAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.end()
		w.good(t)
		var down *errDown
		if _, err := w.get(t, true); !errors.As(err, &down) {
			t.Errorf("%v; want none", err)
		}
	})
}
