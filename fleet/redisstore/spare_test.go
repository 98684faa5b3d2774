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

// A world is what a dialer reaches: a server that answers each line, by connections in memory.
type world struct {
	*dialer
	made []net.Conn // the server's ends
	rude bool       // it ends each connection once it has answered
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

// ends are the server's ends of all connections that were made.
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

// good is a connection that calls share and that the client reads.
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
	if s != nil && looked { // connections in memory cannot be looked at
		s.peek = new(peek)
	}
	return s != nil
}

// All connections end at once, in whatever order: there is one for the next call before it comes.
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
					c.Close() // as the client does, which reads it
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

// A spare connection that ended is handed to nobody.
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
		// A call that is alone does not wait for the connection that it asks for, so it cannot be given that one.
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

// A server that ends each connection at once is not asked for another all the time.
func TestARudeServerIsLeftAloneForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.end()
		w.rude = true
		_, err := w.get(t, false)
		time.Sleep(10*time.Second + latest/2) // between two tries
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

// A call that is alone has a connection to itself only beside one that the client reads: without, the next beat would
// have none.
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

// A connection that cannot be looked at between calls is none for calls that are alone.
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
