package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/outcome"
)

// No frequent statement scans a whole table, whatever the statistics of the database, which are always outdated for a
// queue.
func TestNoTableIsReadFromFrontToBack(t *testing.T) {
	where := place(t, server)
	s := open(t, postgres.Options{URL: where})
	const n = 20_000
	sql(t, where, "ALTER TABLE weir_delivery SET (autovacuum_enabled = false)", "ALTER TABLE weir_request SET (autovacuum_enabled = false)", "ANALYZE", // while the tables are empty
		fmt.Sprintf(`INSERT INTO weir_request(id, tenant, holder, upstream, order_key, fingerprint, correlation, method, path, query, header, body, accepted)
			SELECT 'id' || i, '', '', 'a', '', '', '', 'POST', '/in', '', '', '', weir_now() FROM generate_series(1, %d) i`, n),
		`INSERT INTO weir_delivery(seq, upstream, status, due, not_before, place, stops, home, changed, expires)
			SELECT seq, 'a', 'queued', accepted - 10000000 + seq, 0, 0, false, 0, accepted, accepted + 3600000 FROM weir_request`)
	for i := range 20 { // more often than the planner makes custom plans
		r := request("x")
		r.OrderKey, r.Key, r.Expires = fmt.Sprint(i%3), fmt.Sprint(i), time.Now().Add(time.Hour)
		many(3, func(int) {
			if _, _, err := s.Accept(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
		due, err := s.Due(t.Context(), "a", delivery.Mark{}, 10)
		if err != nil || len(due) != 10 {
			t.Fatal(len(due), err)
		}
		if _, ok, err := s.Next(t.Context(), "a", due[9].Mark()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := s.Defer(t.Context(), time.Now().Add(time.Minute), due[9].Seq); err != nil {
			t.Fatal(err)
		}
		all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Only: []int64{due[0].Seq, due[1].Seq}, Lease: time.Minute})
		if err != nil || len(all) != 2 {
			t.Fatal(all, err)
		}
		if lost, err := s.Renew(t.Context(), time.Minute, all[0].Claim(), all[1].Claim()); err != nil || len(lost) > 0 {
			t.Fatal(lost, err)
		}
		if lost, err := s.End(t.Context(), delivery.End{Claim: all[0].Claim(), To: delivery.Completed, Attempt: &delivery.Attempt{Status: 200}},
			delivery.End{Claim: all[1].Claim(), To: delivery.Queued, Due: time.Now().Add(time.Second)}); err != nil || len(lost) > 0 {
			t.Fatal(lost, err)
		}
		if _, err := s.Sweep(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), all[0].ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Attempts(t.Context(), all[0].ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Counts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Owing(t.Context(), delivery.Mark{}, 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil { // connections report their statistics when they end
		t.Fatal(err)
	}
	c := connect(t, where)
	for end := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		var looked, found, read int64
		if err := c.QueryRow(t.Context(), `SELECT sum(idx_scan), sum(idx_tup_fetch), sum(seq_tup_read) - 2 * 20000 FROM pg_stat_user_tables
			WHERE schemaname = current_schema() AND relname IN ('weir_delivery', 'weir_request', 'weir_attempt')`).Scan(&looked, &found, &read); err != nil {
			t.Fatal(err)
		}
		if read > n || looked > n || found > n {
			t.Fatalf("%d rows were read from front to back, and %d looked up %d times", read, found, looked)
		}
		var left int
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weir'").Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 && looked > 100 {
			t.Logf("%d looks at indexes found %d rows, %d were read from front to back", looked, found, read)
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections are left, %d looks", left, looked)
		}
	}
}

// A statement is planned once per connection, not each time that it is sent.
func TestStatementsArePlannedOnce(t *testing.T) {
	s := open(t, postgres.Options{URL: place(t, server), Connections: 1})
	for i := range 10 { // more often than the planner makes custom plans by default
		keyed := request("x")
		keyed.Key = fmt.Sprint(i)
		for _, r := range []*delivery.Request{request("y"), keyed} {
			d, _, err := s.Accept(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Only: []int64{d.Seq}, Lease: time.Minute})
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			e := delivery.End{Claim: all[0].Claim(), To: delivery.Completed, Alone: i%2 == 0, Attempt: &delivery.Attempt{Status: 200, Class: outcome.OK}}
			if lost, err := s.End(t.Context(), e); err != nil || len(lost) > 0 {
				t.Fatal(lost, err)
			}
		}
	}
	if anew, once, err := s.Plans(t.Context()); err != nil || anew > 0 || once < 60 {
		t.Errorf("%d plans were made for given numbers, %d times one for any was used, %v", anew, once, err)
	}
}
