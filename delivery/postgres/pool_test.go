package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

func request(body string) *delivery.Request {
	return &delivery.Request{Upstream: "a", Method: "POST", Path: "/x", Body: []byte(body)}
}

// many does something at once, as many callers.
func many(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// A server that was started anew has cut all connections: no caller hears of it.
func TestConnectionsThatWereCutAreReplaced(t *testing.T) {
	s := open(t, postgres.Options{URL: place(t, server)})
	for round := range 3 {
		many(20, func(i int) {
			r := request("x")
			r.Key = fmt.Sprint(round, " ", i)
			d, _, err := s.Accept(t.Context(), r)
			for tries := 0; errors.Is(err, delivery.ErrUncertain) && tries < 30; tries++ { // on a slow machine there is no time to ask again
				d, _, err = s.Accept(t.Context(), r)
			}
			if err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			if _, err := s.Get(t.Context(), d.ID); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		})
		sql(t, server.PostgresURL(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weir'")
	}
	if all, _, err := s.List(t.Context(), delivery.Filter{}, "", 100); err != nil || len(all) != 60 {
		t.Errorf("%d are stored, want 60: %v", len(all), err)
	}
}

// A caller that leaves when it has just been given a connection sends nothing: what it would have prepared is not there for
// those after it.
func TestWhoLeavesBeforeAnythingIsSentSpoilsNoConnection(t *testing.T) {
	s := open(t, postgres.Options{URL: place(t, server), Connections: 1})
	if _, _, err := s.Accept(t.Context(), request("x")); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // half of them are given the connection
		if _, err := s.Renew(gone, time.Minute, delivery.Claim{}); err == nil {
			t.Fatal("who has gone was answered")
		}
	}
	if _, err := s.Renew(t.Context(), time.Minute, delivery.Claim{}); err != nil {
		t.Error(err)
	}
}

func TestNoMoreConnectionsThanItMayHave(t *testing.T) {
	s := open(t, postgres.Options{URL: place(t, server) + "&application_name=few", Connections: 3})
	look := connect(t, server.PostgresURL())
	most := 0
	many(64, func(i int) {
		if _, _, err := s.List(t.Context(), delivery.Filter{}, "", 10); err != nil {
			t.Error(err)
		}
		if i == 32 {
			if err := look.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'few'").Scan(&most); err != nil {
				t.Error(err)
			}
		}
	})
	if most == 0 || most > 3 {
		t.Errorf("%d connections, want 1 to 3", most)
	}
}

// What was prepared for tables as they were does not fit those that an upgrade has made of them.
func TestStatementsArePreparedAnewForOtherTables(t *testing.T) {
	at := servers.Patient(place(t, server))
	s := open(t, postgres.Options{URL: at})
	d, _, err := s.Accept(t.Context(), request("x"))
	if err != nil {
		t.Fatal(err)
	}
	gets := func() {
		many(20, func(int) {
			if got, err := s.Get(t.Context(), d.ID); err != nil || got.Starts != 0 {
				t.Error(got, err)
			}
		})
	}
	gets()
	sql(t, at, "ALTER TABLE weir_delivery ALTER COLUMN starts TYPE bigint")
	gets()
}

// A statement that the database refuses is not taken for one that it knows.
func TestWhatWasNotPreparedIsPreparedNextTime(t *testing.T) {
	at := place(t, server)
	s := open(t, postgres.Options{URL: at, Connections: 1})
	sql(t, at, "ALTER TABLE weir_attempt RENAME TO away")
	if _, err := s.Attempts(t.Context(), "x"); err == nil {
		t.Fatal("no error without a table")
	}
	sql(t, at, "ALTER TABLE away RENAME TO weir_attempt")
	if all, err := s.Attempts(t.Context(), "x"); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// works claims and completes what is due of upstream a, and counts it.
func works(t *testing.T, s *postgres.Store) (n int) {
	t.Helper()
	for {
		all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Most: 20, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			return n
		}
		for _, d := range all {
			if lost, err := s.End(t.Context(), delivery.End{Claim: d.Claim(), To: delivery.Completed}); err != nil || len(lost) > 0 {
				t.Fatal(lost, err)
			}
		}
		n += len(all)
	}
}

// A connection is waited for as long as the URL says, and for a second if it says nothing.
func TestTheURLSaysHowLongAConnectionIsWaitedFor(t *testing.T) {
	for at, want := range map[string]time.Duration{"": time.Second, "?connect_timeout=0": time.Second, "?connect_timeout=7": 7 * time.Second} {
		if got, err := postgres.Dials("postgres://weir@127.0.0.1/weir" + at); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", at, got, err, want)
		}
	}
}
