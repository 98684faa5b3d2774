package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

func (m *measure) round(much int, only, more string) {
	settings := []string{"shared_buffers=256MB", "max_wal_size=1GB"}
	if m.stats {
		settings = append(settings, "shared_preload_libraries=pg_stat_statements")
	}
	server := servers.Postgres(m.tb, settings...)
	defer server.Kill()
	db := server.PostgresURL() + more
	for _, part := range []struct {
		name string
		do   func(db string)
	}{
		{"sqlite", m.inFile}, {"filewaiting", func(string) { m.waitingInFile(much) }}, {"key", m.behindOneKey}, {"reader", m.aReaderHolds},
		{"http", m.overHTTP}, {"bodies", func(string) { m.largeBodies(m.bodies) }}, {"down", m.oneIsDown}, {"dynamodb", m.inTable},
		{"accepts", m.accepts}, {"end", m.endToEnd}, {"river", m.besideRiver}, {"pickup", m.pickUp},
		{"waiting", func(db string) {
			m.waiting(db, "10,000 waiting", 10_000)
			m.waiting(db, "many waiting", much)
			m.ratio("claims, p99: many to 10,000 waiting", "claim of 10, p99 ms, many waiting", "claim of 10, p99 ms, 10,000 waiting")
		}},
	} {
		if only == "" || only == part.name {
			part.do(db)
		}
	}
}

func (m *measure) perSecond(name string, n int64, took time.Duration) {
	m.is(name, float64(n)/took.Seconds())
}

// accepts measures accepts, and bare inserts of 64 per transaction.
func (m *measure) accepts(db string) {
	ctx := context.Background()
	at := m.base(db)
	c, err := pgx.Connect(ctx, at)
	m.must(err)
	defer c.Close(ctx)
	_, err = c.Exec(ctx, "CREATE TABLE bare (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, body BYTEA NOT NULL)")
	m.must(err)
	ids, bodies := make([]string, 64), make([][]byte, 64)
	begin := time.Now()
	n := many(1, m.lasts, func(int) {
		for i := range ids {
			ids[i], bodies[i] = delivery.NewID(time.Now()), body
		}
		_, err := c.Exec(ctx, "INSERT INTO bare(id, body) SELECT * FROM unnest($1::text[], $2::bytea[])", ids, bodies)
		m.must(err)
	})
	m.perSecond("bare inserts, 64 in a transaction, a second", 64*n, time.Since(begin))
	s := m.store(at)
	defer s.Close()
	begin = time.Now()
	n = many(callers, m.lasts, func(int) {
		_, _, err := s.Accept(ctx, request())
		m.must(err)
	})
	m.perSecond("accepts, 64 at once, a second", n, time.Since(begin))
	m.ratio("accepts to bare inserts", "accepts, 64 at once, a second", "bare inserts, 64 in a transaction, a second")
	var took []time.Duration
	many(1, m.lasts/4, func(int) {
		begin := time.Now()
		_, _, err := s.Accept(ctx, request())
		m.must(err)
		took = append(took, time.Since(begin))
	})
	m.is("accept alone, p50 ms", quantile(took, 0.5))
}

// endToEnd measures requests that four processes store and deliver, and the same Transport sending directly.
func (m *measure) endToEnd(db string) {
	m.directly()
	m.delivers("end to end, 4 weirs", m.base(db))
	at := m.base(db)
	ctx := context.Background()
	holder, err := pgx.Connect(ctx, at)
	m.must(err)
	defer holder.Close(ctx)
	_, err = holder.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
	m.must(err)
	m.delivers("the same while somebody holds a snapshot", at)
}

func (m *measure) delivers(name, at string) {
	up := newUpstream()
	defer up.Close()
	f := m.fleet(at, up, 4)
	defer f.stop()
	ends := m.watch(at, name, up.n.Load)
	theirs := m.cpuOf(at)
	n := m.handsIn(name, f, up)
	ends()
	m.is(name+": CPU of the database of each, us", (m.cpuOf(at)-theirs).Seconds()*1e6/float64(n))
	m.is(name+": CPU of a direct call, to both", m.latest("direct: CPU of each, us")/(m.latest(name+": CPU of each, us")+m.latest(name+": CPU of the database of each, us")))
}

// handsIn submits requests and waits until all have arrived.
func (m *measure) handsIn(name string, f *fleet, up *upstream) (n int64) {
	begin, used := time.Now(), cpu("self")
	n = many(callers, m.lasts, func(i int) {
		_, _, err := f.workers[i%len(f.workers)].Accept(context.Background(), request())
		m.must(err)
	})
	up.until(n)
	m.perSecond(name+", a second", n, time.Since(begin))
	m.is(name+": CPU of each, us", (cpu("self")-used).Seconds()*1e6/float64(n))
	m.ratio(name+", to direct", name+", a second", "direct, a second")
	return n
}

// pickUp measures the time from acceptance to arrival at 300 requests a second.
func (m *measure) pickUp(db string) {
	m.pickUpOf("pick-up at 300/s, p95 ms", func(up *upstream) *fleet { return m.fleet(m.base(db), up, 4) })
}

func (m *measure) pickUpOf(name string, of func(*upstream) *fleet) { m.pickUpAt(0.95, name, of) }

func (m *measure) pickUpAt(q float64, name string, of func(*upstream) *fleet) {
	up := newUpstream()
	defer up.Close()
	var mu sync.Mutex
	var took []time.Duration
	at := make(map[int]time.Time)
	seen := func(n int) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if first, ok := at[n]; ok {
			took = append(took, now.Sub(first).Abs())
		} else {
			at[n] = now
		}
	}
	up.arrives = func(r *http.Request) {
		n, _ := strconv.Atoi(r.Header.Get("N"))
		seen(n)
	}
	f := of(up)
	defer f.stop()
	used := cpu("self")
	tick := time.NewTicker(time.Second / 300)
	defer tick.Stop()
	var all sync.WaitGroup
	total := int(300 * m.lasts.Seconds())
	for n := range total {
		<-tick.C
		all.Go(func() {
			r := request()
			r.Header = http.Header{"N": {fmt.Sprint(n)}}
			_, _, err := f.workers[n%len(f.workers)].Accept(context.Background(), r)
			m.must(err)
			seen(n)
		})
	}
	all.Wait()
	up.until(int64(total))
	m.is(name, quantile(took, q))
	m.is("CPU of each, ms: "+name, (cpu("self")-used).Seconds()*1000/float64(total))
}

// waiting measures claims while many deliveries wait, without table statistics.
func (m *measure) waiting(db, name string, n int) {
	at := m.base(db)
	s := m.store(at)
	defer s.Close()
	m.fillTables(at, n)
	m.claims(s, name)
	if n > 100_000 {
		m.drains("PostgreSQL", "postgres: {url: '"+at+"'}")
	}
}

// fillTables writes many waiting deliveries into a database.
func (m *measure) fillTables(at string, n int) {
	m.sql(at, fmt.Sprintf(`INSERT INTO weir_request(id, tenant, holder, upstream, order_key, fingerprint, correlation, method, path, query, header, body, accepted)
		SELECT 'id' || i, '', '', 'up', '', '', '', 'POST', '/in', '', '', decode(repeat('00', 128), 'hex'), weir_now() FROM generate_series(1, %d) i`, n),
		`INSERT INTO weir_delivery(seq, upstream, status, due, not_before, place, stops, home, changed)
		SELECT seq, 'up', 'queued', accepted - 10000000 + seq, 0, 0, false, 0, accepted FROM weir_request`,
		fmt.Sprintf("INSERT INTO weir_count(upstream, status, n) VALUES ('up', 'queued', %d)", n))
}

// claimed is the number of measured claims.
const claimed = 400

// claims measures claims of 10 deliveries, which end immediately.
func (m *measure) claims(s delivery.Queue, name string) {
	var took, ended []time.Duration
	for range claimed {
		begin := time.Now()
		all, err := s.Claim(context.Background(), delivery.Ask{Upstream: "up", Most: 10, Lease: time.Minute})
		m.must(err)
		took = append(took, time.Since(begin))
		var ends []delivery.End
		for _, d := range all {
			ends = append(ends, delivery.End{Claim: d.Claim(), To: delivery.Completed})
		}
		begin = time.Now()
		_, err = s.End(context.Background(), ends...)
		m.must(err)
		ended = append(ended, time.Since(begin))
	}
	m.is("claim of 10, p50 ms, "+name, quantile(took, 0.5))
	m.is("claim of 10, p99 ms, "+name, quantile(took, 0.99))
	m.is("the end of those, p50 ms, "+name, quantile(ended, 0.5))
	m.is("the end of those, p99 ms, "+name, quantile(ended, 0.99))
}

// quantile returns a quantile in milliseconds.
func quantile(all []time.Duration, q float64) float64 {
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))].Seconds() * 1000
}
