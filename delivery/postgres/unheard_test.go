package postgres_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/postgres"
)

// A line is a proxy to the server. While it is deaf, it forwards requests but no responses.
type line struct {
	net.Listener
	deaf atomic.Bool
}

func newLine(t *testing.T, to string) *line {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	is := &line{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				return
			}
			go func() { _, _ = io.Copy(s, c); s.Close() }()
			go func() { _, _ = io.Copy(c, hears{s, is}); c.Close() }()
		}
	}()
	return is
}

type hears struct {
	io.Reader
	l *line
}

func (h hears) Read(b []byte) (int, error) {
	for {
		n, err := h.Reader.Read(b)
		if !h.l.deaf.Load() || err != nil {
			return n, err
		}
	}
}

// If the response to a claim is lost, the next sweep gives the claim back, whether it was made with the insert or
// later. No attempt counts.
func TestClaimsThatNobodyHeardOfGoBack(t *testing.T) {
	at := place(t, server)
	l := newLine(t, server.Addr())
	s := open(t, postgres.Options{URL: strings.Replace(at, server.Addr(), l.Addr().String(), 1)})
	look := open(t, postgres.Options{URL: at})
	accept := func() delivery.Delivery { // afterwards there is a connection
		d, _, err := s.Accept(t.Context(), request("stored"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	stored := accept()
	ask := delivery.Ask{Upstream: "a", Owner: "test", Lease: time.Hour, Only: []int64{stored.Seq}}
	l.deaf.Store(true)
	if _, err := s.Claim(t.Context(), ask); !errors.Is(err, delivery.ErrUncertain) {
		t.Fatalf("claimed: %v", err)
	}
	l.deaf.Store(false)
	other := accept()
	r := request("begun")
	r.ID = delivery.NewID(time.Now())
	l.deaf.Store(true)
	if _, _, err := s.AcceptBegun(t.Context(), r, ask); !errors.Is(err, delivery.ErrUncertain) {
		t.Fatalf("begun: %v", err)
	}
	for _, id := range []string{stored.ID, r.ID} {
		if d, err := look.Get(t.Context(), id); err != nil || d.Status != delivery.Processing || d.Attempts != 1 {
			t.Fatalf("%s: %s after %d attempts, %v", id, d.Status, d.Attempts, err)
		}
	}
	l.deaf.Store(false)
	if _, err := s.Sweep(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{stored.ID, other.ID, r.ID} {
		if d, err := look.Get(t.Context(), id); err != nil || d.Status != delivery.Queued || d.Attempts != 0 || d.Starts != 0 {
			t.Errorf("%s: %s after %d attempts, %v", id, d.Status, d.Attempts, err)
		}
	}
	if all, err := look.Claim(t.Context(), delivery.Ask{Upstream: "a", Most: 10, Lease: time.Hour}); err != nil || len(all) != 3 {
		t.Errorf("%d are claimed, %v", len(all), err)
	}
}

// Sweeps of one store may overlap. Each claim with an unknown outcome is given back by one of them.
func TestSweepsMayOverlap(t *testing.T) {
	s := open(t, postgres.Options{URL: place(t, server)})
	s.AddUnsure(60)
	var sweeps sync.WaitGroup
	for range 4 {
		sweeps.Go(func() {
			if _, err := s.Sweep(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	sweeps.Wait()
	if n := s.Unsure(); n != 0 {
		t.Errorf("%d claims were not given back", n)
	}
}

// A second AcceptBegun with the same ID returns the existing delivery.
func TestBegunTwiceIsStoredOnce(t *testing.T) {
	s := open(t, postgres.Options{URL: place(t, server)})
	r := request("begun")
	r.ID = delivery.NewID(time.Now())
	ask := delivery.Ask{Upstream: "a", Owner: "test", Lease: time.Hour}
	first, _, err := s.AcceptBegun(t.Context(), r, ask)
	if err != nil {
		t.Fatal(err)
	}
	many(2, func(int) {
		if d, _, err := s.AcceptBegun(t.Context(), r, ask); err != nil || d.Seq != first.Seq || d.Fence != 1 {
			t.Errorf("begun again: %d under fence %d, %v; want %d", d.Seq, d.Fence, err, first.Seq)
		}
		if d, fresh, err := s.Accept(t.Context(), request("beside")); err != nil || !fresh {
			t.Errorf("beside it: %+v, %v", d, err)
		}
	})
}
