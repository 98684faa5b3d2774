package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// behindOneKey measures 100,000 deliveries behind one order key, with nothing else due. Each claim takes the head of the key,
// and each end promotes the next.
func (m *measure) behindOneKey(db string) {
	const behind = 100_000
	path := m.fill(behind)
	file := m.rows(path, "UPDATE delivery SET order_key = 'k', place = seq, status = CASE seq WHEN 1 THEN 'queued' ELSE 'created' END")
	m.must(file.Close())
	s := m.openFile(path)
	m.keyed(s, "SQLite, 100,000 behind one order key")
	m.must(s.Close())
	at := m.base(db)
	p := m.store(at)
	m.fillTables(at, behind)
	m.sql(at, "UPDATE weir_request SET order_key = 'k'",
		"UPDATE weir_delivery SET line = 7, place = seq, status = CASE seq WHEN 1 THEN 'queued' ELSE 'created' END", "VACUUM weir_delivery")
	m.keyed(p, "PostgreSQL, 100,000 behind one order key")
	m.must(p.Close())
}

// keyed measures claims that each take the head of the order key.
func (m *measure) keyed(s delivery.Queue, name string) {
	m.claims(s, name)
	all, err := s.Counts(context.Background())
	m.must(err)
	for _, c := range all {
		if c.Status == delivery.Completed && c.N == claimed {
			return
		}
	}
	m.tb.Fatalf("the heads that were claimed are not those: %v", all)
}

// aReaderHolds measures a file on which another process holds a read transaction while callers submit as much as it accepts:
// the maximum log, and the time to recover.
func (m *measure) aReaderHolds(string) {
	ctx := context.Background()
	path := m.file("r.db")
	s := m.openFile(path)
	_, _, err := s.Accept(ctx, request())
	m.must(err)
	db := m.rows(path)
	reader, err := db.Begin()
	m.must(err)
	var n int
	m.must(reader.QueryRow("SELECT count(*) FROM delivery").Scan(&n))
	var stored, refused atomic.Int64
	begin, largest := time.Now(), int64(0)
	many(callers, 10*m.lasts, func(i int) {
		switch _, _, err := s.Accept(ctx, request()); {
		case err == nil:
			stored.Add(1)
		case errors.Is(err, delivery.ErrFull):
			refused.Add(1)
			time.Sleep(10 * time.Millisecond) // the minimum wait of a refused caller
		default:
			m.must(err)
		}
		if i == 0 {
			largest = max(largest, s.LogSize())
		}
	})
	m.is("SQLite: a reader holds the file, for s", time.Since(begin).Seconds())
	m.is("SQLite: stored meanwhile", float64(stored.Load()))
	m.is("SQLite: refused meanwhile", float64(refused.Load()))
	m.is("SQLite: the log at most, MiB", float64(max(largest, s.LogSize()))/(1<<20))
	m.must(reader.Rollback())
	m.must(db.Close())
	begin = time.Now()
	for err = delivery.ErrFull; err != nil; {
		_, _, err = s.Accept(ctx, request())
	}
	m.is("SQLite: accepts again after the reader has gone, ms", time.Since(begin).Seconds()*1000)
	m.is("SQLite: the log then, MiB", float64(s.LogSize())/(1<<20))
	m.must(s.Close())
}

// served starts the released weir with deliveries in a file.
func (m *measure) served(deliveries, upstream string) (at string, p *os.Process, end func()) {
	config := filepath.Join(m.tb.TempDir(), "weir.yaml")
	m.must(os.WriteFile(config, fmt.Appendf(nil, "listen: 127.0.0.1:%d\ndeliveries: {%s}\nupstreams:\n  up: %s\n", port(), deliveries, upstream), 0o600))
	text, err := os.ReadFile(config)
	m.must(err)
	at = "http://" + strings.TrimPrefix(strings.SplitN(string(text), "\n", 2)[0], "listen: ")
	cmd := exec.Command(m.weir, "serve", "-config", config)
	m.must(cmd.Start())
	for {
		resp, err := http.Get(at + "/-/weir/v1/deliveries/none")
		if err == nil {
			resp.Body.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return at, cmd.Process, func() {
		m.must(cmd.Process.Kill())
		_ = cmd.Wait()
	}
}

// ofSize is a body without a length.
type ofSize struct{ left int64 }

func (o *ofSize) Read(p []byte) (int, error) {
	if o.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), o.left)
	o.left -= n
	return int(n), nil
}

// largeBodies measures weir's memory while 16 callers submit large bodies, and while they are sent.
func (m *measure) largeBodies(n int) {
	const size = 10 << 20
	up := newUpstream()
	defer up.Close()
	at, p, end := m.served("max_body: 16MiB, file: "+m.file("l.db"), "{url: '"+up.URL+"', routes: [{path: /, deliver: always}]}")
	defer end()
	m.is("SQLite: weir's memory before large bodies, MiB", m.peak(p.Pid))
	var next atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for range 16 {
		all.Go(func() {
			for next.Add(1) <= int64(n) {
				resp, err := http.Post(at+"/in", "application/octet-stream", &ofSize{size})
				m.must(err)
				if resp.Body.Close(); resp.StatusCode != http.StatusAccepted {
					m.tb.Fatalf("it answers %s", resp.Status)
				}
			}
		})
	}
	all.Wait()
	up.until(int64(n))
	m.is(fmt.Sprintf("SQLite: %d bodies of 10 MiB handed in and sent, MiB a second", n), float64(n)*10/time.Since(begin).Seconds())
	m.is(fmt.Sprintf("SQLite: weir's memory at most with %d bodies of 10 MiB, MiB", n), m.peak(p.Pid))
}

// port returns a free port.
func port() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
