package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite" // which brings the driver, too
)

func (m *measure) file(s string) string { return filepath.Join(m.tb.TempDir(), s) }

func (m *measure) openFile(path string) *sqlite.Store {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	m.must(err)
	return s
}

// rows is a connection of one's own, as durable as weir's.
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

// bareInserts are what a file takes without weir.
func (m *measure) bareInserts() {
	db := m.rows(m.file("bare.db"), "CREATE TABLE bare (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body BLOB NOT NULL)")
	begin := time.Now()
	n := many(1, m.lasts, func(int) {
		tx, err := db.Begin()
		m.must(err)
		insert, err := tx.Prepare("INSERT INTO bare(id, body) VALUES (?, ?)")
		m.must(err)
		for range 64 {
			_, err := insert.Exec(delivery.NewID(time.Now()), body)
			m.must(err)
		}
		m.must(tx.Commit())
	})
	m.perSecond("SQLite: bare inserts, 64 in a transaction, a second", 64*n, time.Since(begin))
	m.must(db.Close())
}

// inFile is all of it in a file of SQLite.
func (m *measure) inFile(string) {
	ctx := context.Background()
	m.bareInserts()
	s := m.openFile(m.file("d.db"))
	begin := time.Now()
	n := many(callers, m.lasts, func(int) {
		_, _, err := s.Accept(ctx, request())
		m.must(err)
	})
	m.perSecond("SQLite: accepts, 64 at once, a second", n, time.Since(begin))
	m.ratio("SQLite: accepts to bare inserts", "SQLite: accepts, 64 at once, a second", "SQLite: bare inserts, 64 in a transaction, a second")
	m.alone("SQLite: accept alone", func() {
		_, _, err := s.Accept(ctx, request())
		m.must(err)
	})
	m.must(s.Close())
	m.directly()
	up := newUpstream()
	defer up.Close()
	s = m.openFile(m.file("e.db"))
	weirs := m.weirs(up, s)
	ends := m.profile()
	m.handsIn("SQLite: end to end", weirs, up)
	ends()
	weirs.stop()
	up = newUpstream()
	defer up.Close()
	m.unlimited = true
	weirs = m.weirs(up, m.openFile(m.file("u.db")))
	m.handsIn("SQLite: the same without limit and breaker", weirs, up)
	weirs.stop()
	m.unlimited = false
	m.ratio("SQLite: limit and breaker cost, of 1", "SQLite: end to end, a second", "SQLite: the same without limit and breaker, a second")
	m.pickUpOf("SQLite: pick-up at 300/s, p95 ms", func(up *upstream) *fleet { return m.weirs(up, m.openFile(m.file("p.db"))) })
}

// alone is how long one of something takes, in turns with a write of 4 KiB that is synced.
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

// directly is what the same Transport does by itself.
func (m *measure) directly() {
	up := newUpstream()
	defer up.Close()
	client := m.direct(up)
	begin := time.Now()
	n := many(callers, m.lasts, func(int) {
		resp, err := client.Post(up.URL+"/in", "application/octet-stream", bytes.NewReader(body))
		m.must(err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	})
	m.perSecond("direct, a second", n, time.Since(begin))
}

// fill is a file in which many wait.
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

// waitingInFile is weir with many that wait in a file.
func (m *measure) waitingInFile(n int) {
	path := m.fill(n)
	begin := time.Now()
	s := m.openFile(path)
	m.is("SQLite: opened with many waiting, ms", time.Since(begin).Seconds()*1000)
	m.claims(s, "SQLite, many waiting")
	m.must(s.Close())
	m.drains("SQLite", "file: "+path)
}
