package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// With -stats, the measurements print where the time goes. The figures are then slightly higher.

// watch starts counting. The returned function prints the cost of n things.
func (m *measure) watch(db, name string, n func() int64) (ends func()) {
	if !m.stats {
		return func() {}
	}
	ctx := context.Background()
	m.sql(db, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public", "SELECT public.pg_stat_statements_reset()", "SELECT pg_stat_reset_shared('wal')")
	profiled := m.profile()
	begin, theirs, ours := time.Now(), m.cpuOf(db), cpu("self")
	return func() {
		took := time.Since(begin)
		profiled()
		per := func(of float64) float64 { return of / float64(max(1, n())) }
		fmt.Fprintf(os.Stderr, "  %s: %d in %v; for each of them %.3f ms of CPU of the database, %.3f ms of this process\n", name, n(), took.Round(time.Millisecond),
			per(1000*(m.cpuOf(db)-theirs).Seconds()), per(1000*(cpu("self")-ours).Seconds()))
		c, err := pgx.Connect(ctx, db)
		m.must(err)
		defer c.Close(ctx)
		var syncs, bytes, pages float64
		m.must(c.QueryRow(ctx, "SELECT wal_sync, wal_bytes, wal_fpi FROM pg_stat_wal").Scan(&syncs, &bytes, &pages))
		fmt.Fprintf(os.Stderr, "  for each %.3f flushes of the log, %.0f bytes of it, %.3f whole pages\n", per(syncs), per(bytes), per(pages))
		rows, err := c.Query(ctx, "SELECT calls, rows, total_exec_time, left(regexp_replace(query, '\\s+', ' ', 'g'), 110) FROM public.pg_stat_statements ORDER BY total_exec_time DESC LIMIT 12")
		m.must(err)
		for rows.Next() {
			var calls, of int64
			var ms float64
			var text string
			m.must(rows.Scan(&calls, &of, &ms, &text))
			fmt.Fprintf(os.Stderr, "    %7d calls, %8d rows, %8.0f ms, %.3f ms each: %s\n", calls, of, ms, ms/float64(calls), text)
		}
		m.must(rows.Err())
	}
}

// profile writes a CPU profile of this process until the returned function is called.
func (m *measure) profile() (ends func()) {
	if !m.stats {
		return func() {}
	}
	to, err := os.Create(filepath.Join(os.TempDir(), "deliveries.prof"))
	m.must(err)
	m.must(pprof.StartCPUProfile(to))
	return func() {
		pprof.StopCPUProfile()
		m.must(to.Close())
	}
}

// cpu returns the CPU time of a process by its number, or of this process ("self").
func cpu(of string) time.Duration {
	taken, _ := ticks(of)
	return taken
}

// cpuOf returns the CPU time of a database server: its first process and all its children, including ended ones.
func (m *measure) cpuOf(db string) (sum time.Duration) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, db)
	m.must(err)
	defer c.Close(ctx)
	_, first := ticks(fmt.Sprint(c.PgConn().PID()))
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		of := filepath.Base(path)
		if taken, parent := ticks(of); of == first || parent == first {
			sum += taken
		}
	}
	return sum
}

// ticks returns the CPU time of a process and its ended children, and the number of its parent.
func ticks(of string) (sum time.Duration, parent string) {
	text, _ := os.ReadFile("/proc/" + of + "/stat")
	_, tail, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(tail)
	if len(fields) < 15 {
		return 0, ""
	}
	for _, f := range fields[11:15] {
		n, _ := strconv.Atoi(f)
		sum += time.Duration(n) * time.Second / 100
	}
	return sum, fields[1]
}
