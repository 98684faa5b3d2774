package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/bench/wire"
	"github.com/seed1158cd35/weir/delivery"
)

// overHTTP measures accepts by the released weir, which delivers almost nothing meanwhile, and a server that stores nothing. It
// shows what HTTP costs both sides on their shared cores.
func (m *measure) overHTTP(string) {
	m.bareInserts()
	bare, bareProcess, ends := m.bareServer()
	m.hands("bare net/http, nothing stored", bare, bareProcess)
	ends()
	up := newUpstream()
	defer up.Close()
	at, p, end := m.served("file: "+m.file("h.db"), "{url: '"+up.URL+"', limits: {all: {rate: 1/s, burst: 1}}, routes: [{path: /, deliver: always}]}")
	defer end()
	m.hands("SQLite: accepts over HTTP", at, p)
	const inserts = "SQLite: bare inserts, 64 in a transaction, a second"
	m.ratio("SQLite: accepts over HTTP to bare inserts", "SQLite: accepts over HTTP, 64 at once, a second", inserts)
	m.ratio("bare net/http to bare inserts", "bare net/http, nothing stored, 64 at once, a second", inserts)
	m.ratio("SQLite: accepts over HTTP to bare net/http", "SQLite: accepts over HTTP, 64 at once, a second", "bare net/http, nothing stored, 64 at once, a second")
	c := m.dial(at)
	defer c.Close()
	m.alone("SQLite: accept alone, over HTTP", func() { m.must(c.Ask(accepted, "202")) })
}

// accepted is a submitted request.
var accepted = wire.Request("POST", "/in", "application/octet-stream", "", body)

func (m *measure) dial(at string) *wire.Client {
	c, err := wire.Dial(strings.TrimPrefix(at, "http://"))
	m.must(err)
	return c
}

// hands submits requests over HTTP with a minimal client, and records the CPU of both sides.
func (m *measure) hands(name, at string, p *os.Process) {
	clients := make([]*wire.Client, callers)
	for i := range clients {
		clients[i] = m.dial(at)
		defer clients[i].Close()
	}
	m.must(clients[0].Ask(accepted, "202"))
	server := fmt.Sprint(p.Pid)
	begin, theirs, ours := time.Now(), cpu(server), cpu("self")
	n := many(callers, m.lasts, func(i int) { m.must(clients[i].Ask(accepted, "202")) })
	m.perSecond(name+", 64 at once, a second", n, time.Since(begin))
	m.is(name+": CPU of the server, us each", (cpu(server)-theirs).Seconds()*1e6/float64(n))
	m.is(name+": CPU of the client, us each", (cpu("self")-ours).Seconds()*1e6/float64(n))
}

// bareServer starts a process that responds as weir does and does nothing else.
func (m *measure) bareServer() (at string, p *os.Process, end func()) {
	self, err := os.Executable()
	m.must(err)
	listen := fmt.Sprintf("127.0.0.1:%d", port())
	cmd := exec.Command(self, "-answers", listen)
	m.must(cmd.Start())
	for {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			c.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "http://" + listen, cmd.Process, func() {
		m.must(cmd.Process.Kill())
		_ = cmd.Wait()
	}
}

// answers runs a bareServer.
func answers(listen string) error {
	return http.ListenAndServe(listen, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		id, now := delivery.NewID(time.Now()), time.Now().UTC().Format(time.RFC3339Nano)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "http://"+r.Host+"/-/weir/v1/deliveries/"+id)
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"id":%q,"status":"queued","upstream":"up","accepted":%q,"attempts":0,"due":%q}`, id, now, now)
	}))
}
