package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// A send is a River job that makes the same call.
type send struct {
	URL  string `json:"url"`
	Body []byte `json:"body"`
}

func (send) Kind() string { return "send" }

type sender struct {
	river.WorkerDefaults[send]
	client *http.Client
}

func (s *sender) Work(ctx context.Context, job *river.Job[send]) error {
	r, err := http.NewRequestWithContext(ctx, "POST", job.Args.URL, bytes.NewReader(job.Args.Body))
	if err != nil {
		return err
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}

// besideRiver measures four River clients on the same server, each with as many workers and connections as a weir.
func (m *measure) besideRiver(db string) {
	ctx := context.Background()
	at := m.base(db)
	up := newUpstream()
	defer up.Close()
	var clients []*river.Client[pgx.Tx]
	for i := range 4 {
		c, err := pgxpool.ParseConfig(at)
		m.must(err)
		c.MaxConns = 8
		pool, err := pgxpool.NewWithConfig(ctx, c)
		m.must(err)
		defer pool.Close()
		driver := riverpgxv5.New(pool)
		if i == 0 {
			migrator, err := rivermigrate.New(driver, nil)
			m.must(err)
			_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
			m.must(err)
		}
		workers := river.NewWorkers()
		river.AddWorker(workers, &sender{client: &http.Client{Transport: transport()}})
		client, err := river.NewClient(driver, &river.Config{Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: callers}},
			FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 100 * time.Millisecond})
		m.must(err)
		m.must(client.Start(ctx))
		clients = append(clients, client)
	}
	begin := time.Now()
	n := many(callers, m.lasts, func(i int) {
		_, err := clients[i%4].Insert(ctx, send{URL: up.URL + "/in", Body: body}, nil)
		m.must(err)
	})
	up.until(n)
	m.perSecond("River, 4 clients, a second", n, time.Since(begin))
	if len(m.figures["end to end, 4 weirs, a second"]) > 0 {
		m.ratio("end to end, to River", "end to end, 4 weirs, a second", "River, 4 clients, a second")
	}
	for _, c := range clients {
		m.must(c.Stop(ctx))
	}
}
