package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite" // also registers the driver
)

func (m *measure) file(s string) string { return filepath.Join(m.tb.TempDir(), s) }

func (m *measure) openFile(path string) *sqlite.Store {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	m.must(err)
	return s
}

// rows opens a separate connection that is as durable as weir's.
func (m *measure) rows(path string, statements ...string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	m.must(err)
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		_, err := db.Exec(s)
		m.must(err)
	}
	return db
}

// bareInserts measures a file's capacity without weir.
func (m *measure) bareInserts() {
	db := m.rows(m.file("bare.db"), "CREATE TABLE bare (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body BLOB NOT NULL)")
	m.bare("SQLite: bare inserts, 64 in a transaction", db, []string{"INSERT INTO bare(id, body) VALUES (?, ?)"}, 1, func(do []*sql.Stmt) {
		_, err := do[0].Exec(delivery.NewID(time.Now()), body)
		m.must(err)
	})
}

// bare measures statements without weir, for 64 things per transaction. Each statement covers `together` of them.
func (m *measure) bare(name string, db *sql.DB, statements []string, together int, each func(do []*sql.Stmt)) {
	var made []*sql.Stmt
	for _, s := range statements {
		is, err := db.Prepare(s)
		m.must(err)
		made = append(made, is)
	}
	begin, used := time.Now(), cpu("self")
	n := 64 * many(1, m.lasts, func(int) {
		tx, err := db.Begin()
		m.must(err)
		var do []*sql.Stmt
		for _, s := range made {
			do = append(do, tx.Stmt(s))
		}
		for range 64 / together {
			each(do)
		}
		m.must(tx.Commit())
	})
	m.perSecond(name+", a second", n, time.Since(begin))
	m.is(name+": CPU of each, us", (cpu("self")-used).Seconds()*1e6/float64(n))
	m.must(db.Close())
}

// theirRows measures the rows of deliveries with their indexes, written without weir, with weir's number of rows per statement:
// the rows of an accept, and the rows of an accept, a first claim and its end.
func (m *measure) theirRows() {
	made := func(name string) *sql.DB {
		path := m.file(name)
		m.must(m.openFile(path).Close())
		return m.rows(path)
	}
	const (
		together = 16
		insert   = "INSERT INTO delivery(id, upstream, status, due, fingerprint, accepted, changed, tenant, holder, correlation, not_before, place, attempts, starts, fence, worker, lease, began) VALUES "
		row      = "(?, ?, ?, ?, ?, ?, ?, '', '', '', 0, 0, 0, 0, 0, '', NULL, NULL)"
		begun    = "(?, ?, ?, ?, ?, ?, ?, '', '', '', 0, 0, ?, ?, ?, ?, ?, ?)"
		request  = "INSERT INTO request(seq, method, path, body, query, header) VALUES "
		itsRow   = "(?, ?, ?, ?, '', '')"
		end      = "UPDATE delivery SET status = 'completed', lease = NULL, worker = '', stalls = 0, changed = ?, due = ? WHERE seq = ? AND status = 'processing' AND fence = 1"
		attempt  = "INSERT INTO attempt(seq, n, series, began, took, status, class, code, answer, counted) VALUES (?, 1, 1, ?, 1, 200, 'ok', '', x'', 1)"
	)
	many := func(row string) string { return row + strings.Repeat(", "+row, together-1) }
	print := make([]byte, 32)
	stores := func(do []*sql.Stmt, status string, more func(now int64) []any) (last, now int64) {
		now = time.Now().UnixMilli()
		var all, theirs []any
		for range together {
			all = append(append(all, delivery.NewID(time.Now()), "up", status, now, print, now, now), more(now)...)
		}
		is, err := do[0].Exec(all...)
		m.must(err)
		last, err = is.LastInsertId()
		m.must(err)
		for seq := last - together + 1; seq <= last; seq++ {
			theirs = append(theirs, seq, "POST", "/in", body)
		}
		_, err = do[1].Exec(theirs...)
		m.must(err)
		return last, now
	}
	m.bare("SQLite: the rows of an accept, bare", made("accepts.db"), []string{insert + many(row), request + many(itsRow)}, together,
		func(do []*sql.Stmt) { stores(do, "queued", func(int64) []any { return nil }) })
	m.bare("SQLite: the rows of an accept, its claim and its end, bare", made("ends.db"), []string{insert + many(begun), request + many(itsRow), end, attempt}, together, func(do []*sql.Stmt) {
		last, now := stores(do, "processing", func(now int64) []any { return []any{1, 1, 1, "w", now, now} })
		for seq := last - together + 1; seq <= last; seq++ {
			_, err := do[2].Exec(now, now, seq)
			m.must(err)
			_, err = do[3].Exec(seq, now)
			m.must(err)
		}
	})
	const inserts = "SQLite: bare inserts, 64 in a transaction, a second"
	m.ratio("SQLite: the rows of an accept, to bare inserts", "SQLite: the rows of an accept, bare, a second", inserts)
	m.ratio("SQLite: the rows of an accept, its claim and its end, to bare inserts", "SQLite: the rows of an accept, its claim and its end, bare, a second", inserts)
}

// inFile runs all measurements in a SQLite file.
func (m *measure) inFile(string) {
	ctx := context.Background()
	m.bareInserts()
	m.theirRows()
	s := m.openFile(m.file("d.db"))
	begin, used := time.Now(), cpu("self")
	n := many(callers, m.lasts, func(int) {
		_, _, err := s.Accept(ctx, request())
		m.must(err)
	})
	m.perSecond("SQLite: accepts, 64 at once, a second", n, time.Since(begin))
	m.is("SQLite: accepts, 64 at once: CPU of each, us", (cpu("self")-used).Seconds()*1e6/float64(n))
	m.ratio("SQLite: accepts to the rows of an accept, bare", "SQLite: accepts, 64 at once, a second", "SQLite: the rows of an accept, bare, a second")
	m.ratio("SQLite: accepts to bare inserts", "SQLite: accepts, 64 at once, a second", "SQLite: bare inserts, 64 in a transaction, a second")
	m.alone("SQLite: accept alone", func() {
		_, _, err := s.Accept(ctx, request())
		m.must(err)
	})
	m.must(s.Close())
	m.directly()
	ends := m.profile()
	for _, unlimited := range []bool{false, true, true, false} { // to balance the order
		m.inTurn(unlimited)
	}
	ends()
	m.is("SQLite: a second with limit and breaker, to without", m.sum(ended+", a second")/m.sum(free+", a second"))
	m.is("SQLite: CPU with limit and breaker, to without", m.sum(ended+": CPU of each, us")/m.sum(free+": CPU of each, us"))
	m.pickUpOf("SQLite: pick-up at 300/s, p95 ms", func(up *upstream) *fleet { return m.weirs(up, m.openFile(m.file("p.db"))) })
}

// Deliveries end to end, with and without limit and breaker.
const (
	ended = "SQLite: end to end"
	free  = "SQLite: the same without limit and breaker"
)

// inTurn measures one of the two, in a separate file.
func (m *measure) inTurn(unlimited bool) {
	up := newUpstream()
	defer up.Close()
	m.unlimited = unlimited
	weirs := m.weirs(up, m.openFile(m.file(fmt.Sprint(unlimited, time.Now().UnixNano(), ".db"))))
	m.handsIn(map[bool]string{false: ended, true: free}[unlimited], weirs, up)
	weirs.stop()
	m.unlimited = false
}

// sum adds the latest two values of a figure.
func (m *measure) sum(name string) float64 {
	all := m.figures[name]
	return all[len(all)-2] + all[len(all)-1]
}

// alone measures the time of single calls, alternating with a synced write of 4 KiB.
func (m *measure) alone(name string, do func()) {
	var took, floor []time.Duration
	f, err := os.Create(m.file("sync"))
	m.must(err)
	page := make([]byte, 4096)
	many(1, m.lasts/2, func(int) {
		begin := time.Now()
		do()
		took = append(took, time.Since(begin))
		begin = time.Now()
		_, err := f.Write(page)
		m.must(err)
		m.must(f.Sync())
		floor = append(floor, time.Since(begin))
	})
	m.must(f.Close())
	m.is(name+", p50 ms", quantile(took, 0.5))
	m.is("4 KiB written and synced, p50 ms", quantile(floor, 0.5))
	m.ratio(name+" to that", name+", p50 ms", "4 KiB written and synced, p50 ms")
}

// directly measures the same Transport without deliveries.
func (m *measure) directly() {
	up := newUpstream()
	defer up.Close()
	client := m.direct(up)
	begin, ours := time.Now(), cpu("self")
	n := many(callers, m.lasts, func(int) {
		resp, err := client.Post(up.URL+"/in", "application/octet-stream", bytes.NewReader(body))
		m.must(err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	})
	m.perSecond("direct, a second", n, time.Since(begin))
	m.is("direct: CPU of each, us", (cpu("self")-ours).Seconds()*1e6/float64(n))
}

// fill returns a file with many waiting deliveries.
func (m *measure) fill(n int) (path string) {
	path = m.file(fmt.Sprintf("w%d.db", n))
	m.must(m.openFile(path).Close())
	db := m.rows(path, "PRAGMA synchronous = off", fmt.Sprintf(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < %d)
		INSERT INTO delivery(seq, id, tenant, holder, upstream, status, due, not_before, place, fingerprint, correlation, accepted, changed)
		SELECT n, 'id' || n, '', '', 'up', 'queued', 1700000000000 + n, 0, 0, x'', '', 1700000000000, 1700000000000 FROM i`, n),
		"INSERT INTO request(seq, method, path, query, header, body) SELECT seq, 'POST', '/in', '', '', zeroblob(128) FROM delivery",
		"PRAGMA wal_checkpoint(TRUNCATE)")
	m.must(db.Close())
	return path
}

// waitingInFile measures weir with many waiting deliveries in a file.
func (m *measure) waitingInFile(n int) {
	path := m.fill(n)
	begin := time.Now()
	s := m.openFile(path)
	m.is("SQLite: opened with many waiting, ms", time.Since(begin).Seconds()*1000)
	m.claims(s, "SQLite, many waiting")
	m.must(s.Close())
	m.drains("SQLite", "file: "+path)
}
