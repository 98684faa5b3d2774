package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/deliverytest"
	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

// server is shared by all tests that do not stop it.
var server *servers.Server

func TestMain(m *testing.M) {
	watchdog.Start()
	code := servers.With(func(t servers.TB) int {
		server = servers.Postgres(t)
		return m.Run()
	})
	os.Exit(code)
}

var schemas atomic.Int64

// place returns the URL of an empty schema.
func place(t testing.TB, of *servers.Server) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", schemas.Add(1))
	sql(t, of.PostgresURL(), "CREATE SCHEMA "+name)
	return of.PostgresURL() + "&search_path=" + url.QueryEscape(name)
}

func sql(t testing.TB, at string, statements ...string) {
	t.Helper()
	c := connect(t, at)
	for _, s := range statements {
		if _, err := c.Exec(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func connect(t testing.TB, at string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// open returns a store in a schema with its tables.
func open(t testing.TB, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Init(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

// aClock replaces the clock of the database by one that tests control.
const aClock = `CREATE TABLE clock (ms bigint); INSERT INTO clock VALUES (0);
	CREATE OR REPLACE FUNCTION weir_now() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT ms FROM clock'`

func TestQueue(t *testing.T) {
	for name, unprepared := range map[string]bool{"Prepared": false, "Unprepared": true} {
		t.Run(name, func(t *testing.T) {
			var clock *pgx.Conn
			shows := func() {
				if _, err := clock.Exec(context.Background(), "UPDATE clock SET ms = $1", time.Now().UnixMilli()); err != nil {
					t.Error(err)
				}
			}
			deliverytest.Test(t, deliverytest.Engine{
				In: func(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) },
				Open: func(t *testing.T) delivery.Queue {
					at := place(t, server)
					s := open(t, postgres.Options{URL: at, Unprepared: unprepared, MaxSize: 4 << 40}) // for the declared sizes of large bodies
					clock = connect(t, at)
					if _, err := clock.Exec(context.Background(), aClock); err != nil {
						t.Fatal(err)
					}
					shows()
					return s
				},
				Bounded: func(t *testing.T, most, bytes int64) func() delivery.Queue {
					o := postgres.Options{URL: place(t, server), Unprepared: unprepared, MaxStored: most, MaxSize: bytes}
					first := true
					return func() delivery.Queue {
						s := open(t, o)
						if first {
							first, clock = false, connect(t, o.URL)
							if _, err := clock.Exec(context.Background(), aClock); err != nil {
								t.Fatal(err)
							}
						}
						shows()
						return s
					}
				},
				Sleep: func(d time.Duration) {
					time.Sleep(d)
					shows()
				},
			})
		})
	}
}
