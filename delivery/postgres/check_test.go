package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// at returns a store for a database without changing it.
func at(t *testing.T, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A database that would lose stored deliveries, or that has other tables, is refused with an error that says what to
// do.
func TestADatabaseThatIsNotAsItMustBe(t *testing.T) {
	for name, c := range map[string]struct {
		sql        []string
		url        string
		unprepared bool
		says       string
	}{
		"as it must be":       {},
		"tables to come":      {sql: []string{"UPDATE weir_schema SET version = 99"}, says: "have version 99, this weir supports "},
		"tables of before":    {sql: []string{"UPDATE weir_schema SET version = 0"}, says: "run weir store init"},
		"no tables":           {sql: []string{"DROP TABLE weir_schema"}, says: "run weir store init"},
		"not synchronous":     {url: "&synchronous_commit=off", says: "synchronous_commit is off"},
		"another isolation":   {url: "&default_transaction_isolation=serializable", says: "set it to read committed"},
		"its role's own":      {sql: []string{"ALTER ROLE weir SET synchronous_commit = off"}},
		"its role's, pooled":  {sql: []string{"ALTER ROLE weir SET synchronous_commit = off"}, unprepared: true, says: "synchronous_commit is off"},
		"nobody of this name": {url: "&user=nobody_here", says: "nobody_here"},
	} {
		t.Run(name, func(t *testing.T) {
			where := place(t, server)
			open(t, postgres.Options{URL: where})
			sql(t, where, c.sql...)
			t.Cleanup(func() { sql(t, where, "ALTER ROLE weir RESET synchronous_commit") })
			s := at(t, postgres.Options{URL: where + c.url, Unprepared: c.unprepared})
			err := s.Check(t.Context())
			_, _, accept := s.Accept(t.Context(), request("x"))
			if c.says == "" {
				if err != nil || accept != nil {
					t.Error(err, accept)
				}
				return
			}
			if _, is := errors.AsType[*postgres.SchemaError](err); !is || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if accept == nil {
				t.Error("it is used nevertheless")
			}
		})
	}
}

func TestPasswordsAndTLS(t *testing.T) {
	db, ca := servers.PostgresTLS(t, "open sesame")
	_, other := servers.PostgresTLS(t, "x")
	plain := servers.Patient(db.PostgresURL())
	url := strings.Replace(plain, "sslmode=disable", "sslmode=verify-full&application_name=tls&sslrootcert=", 1)
	s := open(t, postgres.Options{URL: url + ca, Password: "open sesame"})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := connect(t, strings.Replace(plain, "weir@", "weir:open%20sesame@", 1))
	secure := 0
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'tls' AND ssl").Scan(&secure); err != nil || secure == 0 {
		t.Errorf("%d connections with TLS: %v", secure, err)
	}
	for name, o := range map[string]postgres.Options{
		"not contain a password": {URL: url + ca},
		"a wrong password":       {URL: url + ca, Password: "open barley"},
		"signed by another":      {URL: url + other, Password: "open sesame"},
	} {
		if err := at(t, o).Check(t.Context()); err == nil || strings.Contains(err.Error(), "barley") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Everything works behind a pooler that uses a different connection for each transaction.
func TestAPooler(t *testing.T) {
	s := open(t, postgres.Options{URL: servers.PgBouncer(t, servers.Postgres(t)).PostgresURL(), Unprepared: true})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	many(100, func(int) {
		d, fresh, err := s.Accept(t.Context(), request("x"))
		if err != nil || !fresh {
			t.Error(fresh, err)
		}
		if got, err := s.Get(t.Context(), d.ID); err != nil || string(got.Body) != "x" {
			t.Error(got, err)
		}
	})
	if sent := works(t, s); sent != 100 {
		t.Errorf("%d sent, want 100", sent)
	}
}
