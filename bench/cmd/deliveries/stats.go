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

// Where the time goes, for -stats: printed beside figures, which cost a little more then.

// watch begins to count; the function that it returns says what n of something have cost.
func (m *measure) watch(db, name string, n func() int64) (ends func()) {
	if !m.stats {
		return func() {}
	}
	ctx := context.Background()
	m.sql(db, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public", "SELECT public.pg_stat_statements_reset()", "SELECT pg_stat_reset_shared('wal')")
	profiled := m.profile()
	begin, theirs, ours := time.Now(), cpu("postgres"), cpu("self")
	return func() {
		took := time.Since(begin)
		profiled()
		per := func(of float64) float64 { return of / float64(max(1, n())) }
		fmt.Fprintf(os.Stderr, "  %s: %d in %v; for each of them %.3f ms of CPU of the database, %.3f ms of this process\n", name, n(), took.Round(time.Millisecond),
			per(1000*(cpu("postgres")-theirs).Seconds()), per(1000*(cpu("self")-ours).Seconds()))
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

// profile writes what this process computes until the function that it returns is called.
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

// cpu is what a process, by its number, or all of a name, have taken.
func cpu(name string) (sum time.Duration) {
	at := "/proc/[0-9]*/stat"
	one := name == "self" || strings.Trim(name, "0123456789") == ""
	if one {
		at = "/proc/" + name + "/stat"
	}
	all, _ := filepath.Glob(at)
	for _, path := range all {
		text, _ := os.ReadFile(path)
		head, tail, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(tail); len(fields) > 13 && (one || strings.HasSuffix(head, "("+name)) {
			for _, f := range fields[11:13] {
				ticks, _ := strconv.Atoi(f)
				sum += time.Duration(ticks) * time.Second / 100
			}
		}
	}
	return sum
}
