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

// many calls do concurrently for n callers.
func many(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// A restarted server has closed all connections. Callers do not notice.
func TestConnectionsThatWereCutAreReplaced(t *testing.T) {
	s := open(t, postgres.Options{URL: place(t, server)})
	for round := range 3 {
		many(20, func(i int) {
			r := request("x")
			r.Key = fmt.Sprint(round, " ", i)
			d, _, err := s.Accept(t.Context(), r)
			for tries := 0; errors.Is(err, delivery.ErrUncertain) && tries < 30; tries++ { // on a slow machine there is no time for a retry
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

// A caller whose context ends right after it has got a connection sends nothing. Statements that it did not prepare are
// not considered prepared later.
func TestWhoLeavesBeforeAnythingIsSentSpoilsNoConnection(t *testing.T) {
	s := open(t, postgres.Options{URL: place(t, server), Connections: 1})
	if _, _, err := s.Accept(t.Context(), request("x")); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // half of them get the connection
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

// Statements that were prepared before an upgrade of the tables are prepared again.
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

// A statement whose preparation failed is not considered prepared.
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

// works claims and completes the due deliveries of upstream a, and returns how many.
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

// The connect timeout is taken from the URL, and is a second by default.
func TestTheURLSaysHowLongAConnectionIsWaitedFor(t *testing.T) {
	for at, want := range map[string]time.Duration{"": time.Second, "?connect_timeout=0": time.Second, "?connect_timeout=7": 7 * time.Second} {
		if got, err := postgres.Dials("postgres://weir@127.0.0.1/weir" + at); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", at, got, err, want)
		}
	}
}
