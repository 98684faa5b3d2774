package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/outcome"
)

// A ride is an end that waits for an accept.
type ride struct {
	d    delivery.Delivery
	lost []delivery.Claim
	err  error
	all  sync.WaitGroup
}

// rides makes the end of a delivery wait for an accept. On a busy machine it may be recorded separately instead.
func rides(t *testing.T, s *postgres.Store, change func(*delivery.End)) *ride {
	t.Helper()
	var d delivery.Delivery
	inTime(t, func() (err error) {
		r := request("begun")
		r.ID = delivery.NewID(time.Now())
		d, _, err = s.AcceptBegun(t.Context(), r, delivery.Ask{Upstream: "a", Owner: "test", Lease: time.Hour})
		return err
	})
	is := &ride{d: d}
	waiting := s.AwaitsAccepts()
	is.all.Go(func() {
		e := delivery.End{Claim: d.Claim(), To: delivery.Completed, Alone: true, Attempt: &delivery.Attempt{Status: 200, Class: outcome.OK, Answer: []byte("done")}}
		if change != nil {
			change(&e)
		}
		for {
			if is.lost, is.err = s.End(t.Context(), e); !errors.Is(is.err, delivery.ErrUncertain) {
				return
			}
			e.Again = true // like a worker
		}
	})
	for end := time.Now().Add(time.Second); waiting() == 0 && time.Now().Before(end); {
		<-time.After(50 * time.Microsecond)
	}
	return is
}

// inTime retries do a few times, because a busy machine may exceed its timeout of a second.
func inTime(t *testing.T, do func() error) {
	t.Helper()
	var err error
	for range 10 {
		if err = do(); err == nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ended waits for the ride to end and checks it.
func (is *ride) ended(t *testing.T, s *postgres.Store, want delivery.Status) {
	t.Helper()
	is.all.Wait()
	var d delivery.Delivery
	inTime(t, func() (err error) {
		d, err = s.Get(t.Context(), is.d.ID) // perhaps over another connection
		return err
	})
	if is.err != nil || d.Status != want || (len(is.lost) == 0) != (want == delivery.Completed) {
		t.Errorf("it is %s, lost %v, %v; want %s", d.Status, is.lost, is.err, want)
	}
	if all, err := s.Attempts(t.Context(), is.d.ID); err != nil || (len(all) == 1) != (want == delivery.Completed) {
		t.Errorf("attempts: %+v, %v", all, err)
	}
}

// Ends join the accepts that follow them, in one transaction.
func TestEndsGoWithAccepts(t *testing.T) {
	at := place(t, server)
	s := open(t, postgres.Options{URL: at})
	c := connect(t, at)
	for range 200 {
		is := rides(t, s, nil)
		var next delivery.Delivery
		inTime(t, func() (err error) {
			next, _, err = s.Accept(t.Context(), request("next"))
			return err
		})
		is.ended(t, s, delivery.Completed)
		var one bool
		if err := c.QueryRow(t.Context(), "SELECT count(DISTINCT xmin::text) = 1 FROM weir_delivery WHERE seq IN ($1, $2)", is.d.Seq, next.Seq).Scan(&one); err != nil {
			t.Fatal(err)
		}
		if one || t.Failed() {
			return
		}
	}
	t.Error("none went with an accept")
}

// An end that joined an accept and is blocked does not block the accept, and is not lost.
func TestWhatRidesIsInNobodysWay(t *testing.T) {
	at := place(t, server)
	l := newLine(t, server.Addr())
	s := open(t, postgres.Options{URL: strings.Replace(at, server.Addr(), l.Addr().String(), 1)})
	other := connect(t, at)
	begin := func(statement string, args ...any) (end func()) {
		tx, err := other.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tx.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	accept := func(want error) {
		t.Helper()
		next := func() error {
			_, _, err := s.Accept(t.Context(), request("next"))
			return err
		}
		if want == nil {
			inTime(t, next)
		} else if err := next(); !errors.Is(err, want) {
			t.Errorf("accepted: %v, want %v", err, want)
		}
	}
	for range 10 {
		lost := rides(t, s, func(e *delivery.End) { e.Fence++ })
		accept(nil)
		lost.ended(t, s, delivery.Processing)

		locked := rides(t, s, nil)
		free := begin("SELECT FROM weir_delivery WHERE seq = $1 FOR UPDATE", locked.d.Seq)
		accept(nil) // although the end waits for the lock
		free()
		locked.ended(t, s, delivery.Completed)

		sql(t, at, "ALTER TABLE weir_attempt ADD CONSTRAINT none CHECK (status <> 299)")
		refused := rides(t, s, func(e *delivery.End) { e.Attempt.Status = 299 })
		accept(nil)
		if refused.all.Wait(); refused.err == nil {
			t.Error("an end that the database refuses is recorded")
		}
		sql(t, at, "ALTER TABLE weir_attempt DROP CONSTRAINT none")

		twice := request("twice")
		twice.ID = refused.d.ID // it exists already
		beside := rides(t, s, nil)
		if d, _, err := s.AcceptBegun(t.Context(), twice, delivery.Ask{Upstream: "a", Lease: time.Hour}); !errors.Is(err, delivery.ErrKeyReused) {
			t.Errorf("another request under one ID: %v, %v", d.Seq, err)
		}
		beside.ended(t, s, delivery.Completed)
	}
	for range 3 {
		deaf := rides(t, s, nil)
		l.deaf.Store(true)
		accept(delivery.ErrUncertain)
		l.deaf.Store(false)
		deaf.ended(t, s, delivery.Completed)
	}
}
