package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

var callers = 64

var body = make([]byte, 1024)

// An upstream responds immediately, and counts.
type upstream struct {
	*httptest.Server
	n       atomic.Int64
	arrives func(r *http.Request)
}

func newUpstream() *upstream {
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u.arrives != nil {
			u.arrives(r)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		u.n.Add(1)
	}))
	return u
}

// until waits until n requests have arrived.
func (u *upstream) until(n int64) {
	for u.n.Load() < n {
		time.Sleep(time.Millisecond)
	}
}

// transport keeps as many connections as there are concurrent attempts.
func transport() *http.Transport { return &http.Transport{MaxIdleConnsPerHost: parallel()} }

// parallel returns the number of concurrent attempts of all processes.
func parallel() int { return 4 * callers }

// policy has a limit and a breaker that never refuse.
func (m *measure) policy() *weir.Upstream {
	p := weir.Policy{
		Limits:  []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1_000_000, Per: time.Second}}},
		Breaker: breaker.Config{Share: 0.5},
	}
	if m.unlimited {
		p = weir.Policy{}
	}
	u, err := weir.New("up", p, weir.Options{})
	m.must(err)
	return u
}

// base returns the URL of an empty schema in a database.
func (m *measure) base(db string) string {
	schemas++
	name := fmt.Sprintf("s%d", schemas)
	m.sql(db, "CREATE SCHEMA "+name)
	return db + "&search_path=" + name
}

var schemas int

func (m *measure) sql(at string, statements ...string) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, at)
	m.must(err)
	defer c.Close(ctx)
	for _, s := range statements {
		_, err := c.Exec(ctx, s)
		m.must(err)
	}
}

// A fleet is several workers that share a database.
type fleet struct {
	m       *measure
	workers []*delivery.Worker
	stores  []delivery.Queue
	stop    func()
}

func (m *measure) store(at string) *postgres.Store {
	s, err := postgres.New(postgres.Options{URL: at})
	m.must(err)
	_, err = s.Init(context.Background())
	m.must(err)
	return s
}

func (m *measure) fleet(at string, up *upstream, n int) *fleet {
	var stores []delivery.Queue
	for range n {
		stores = append(stores, m.store(at))
	}
	return m.weirs(up, stores...)
}

// weirs starts a worker for each store.
func (m *measure) weirs(up *upstream, stores ...delivery.Queue) *fleet {
	to, err := url.Parse(up.URL)
	m.must(err)
	return m.weirsOf(func(string) *url.URL { return to }, stores...)
}

// weirsOf starts workers with several upstreams.
func (m *measure) weirsOf(at func(upstream string) *url.URL, stores ...delivery.Queue) *fleet {
	f := &fleet{m: m, stores: stores}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, s := range stores {
		senders := make(map[string]delivery.Sender)
		for _, name := range []string{"up", "gone"} {
			senders[name] = &delivery.HTTP{Upstream: m.policy(), URL: at(name), Base: transport()}
		}
		w := &delivery.Worker{Queue: s, Sender: func(upstream string) delivery.Sender { return senders[upstream] }, Parallel: parallel() / len(stores), Poll: 2 * time.Second}
		f.workers = append(f.workers, w)
		all.Go(func() { w.Run(ctx) })
	}
	f.stop = func() {
		cancel()
		all.Wait()
		for _, s := range f.stores {
			m.must(s.Close())
		}
	}
	return f
}

func request() *delivery.Request {
	return &delivery.Request{Upstream: "up", Method: "POST", Path: "/in", Body: body}
}

// many runs do in n goroutines repeatedly for a time, and returns the number of calls.
func many(n int, lasts time.Duration, do func(caller int)) (count int64) {
	var all sync.WaitGroup
	var done atomic.Int64
	end := time.Now().Add(lasts)
	for i := range n {
		all.Go(func() {
			for time.Now().Before(end) {
				do(i)
				done.Add(1)
			}
		})
	}
	all.Wait()
	return done.Load()
}

// direct returns a client with the same policy.
func (m *measure) direct(up *upstream) *http.Client {
	return &http.Client{Transport: &httpx.Transport{Upstream: m.policy(), Base: transport()}}
}
