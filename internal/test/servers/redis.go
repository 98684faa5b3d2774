package servers

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Redis starts a redis-server without persistence, with optional arguments, and waits until it responds. If redis-server is
// missing, the test fails with instructions.
func Redis(t TB, args ...string) *Server {
	t.Helper()
	return run(t, append([]string{"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"}, args...))
}

// run starts a redis-server on a free port.
func run(t TB, args []string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatalf("redis-server: %v; run make deps", err)
	}
	return launch(t, &Server{ready: pings, command: func(s *Server, port string) *exec.Cmd {
		return exec.Command("redis-server", slices.Concat(args, []string{"--port", port, "--bind", "127.0.0.1",
			"--dir", s.dir, "--logfile", filepath.Join(s.dir, "log")})...)
	}})
}

func pings(s *Server) bool {
	answer, err := s.Do("PING")
	return err == nil && answer == "PONG" || err != nil && strings.HasPrefix(err.Error(), "NOAUTH")
}

// URL returns the URL for a client's configuration.
func (s *Server) URL() string { return "redis://" + s.addr }

// FlushScripts removes the server's scripts.
func (s *Server) FlushScripts() { s.must("SCRIPT", "FLUSH") }

// FlushAll removes all data.
func (s *Server) FlushAll() { s.must("FLUSHALL") }

func (s *Server) must(args ...string) string {
	s.t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		s.t.Fatalf("%s at %s: %v", args[0], s.addr, err)
	}
	return answer
}

// Do sends one command over a separate connection and returns the reply as text, with list elements on separate lines.
func (s *Server) Do(args ...string) (string, error) {
	c, err := net.DialTimeout("tcp", s.addr, patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write([]byte(b.String())); err != nil {
		return "", err
	}
	return reply(bufio.NewReader(c))
}

// reply reads one reply.
func reply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '-':
		return "", errors.New(line[1:])
	case '$':
		return bulk(r, n)
	case '*':
		items := make([]string, max(0, n))
		for i := range items {
			if items[i], err = reply(r); err != nil {
				return "", err
			}
		}
		return strings.Join(items, "\n"), nil
	}
	return line[1:], nil
}

func bulk(r *bufio.Reader, n int) (string, error) {
	if n < 0 {
		return "", nil
	}
	text := make([]byte, n+2)
	for at := 0; at < len(text); {
		k, err := r.Read(text[at:])
		if err != nil {
			return "", err
		}
		at += k
	}
	return string(text[:n]), nil
}

// Replica starts a replica of a server and waits until it has caught up.
func Replica(t TB, of *Server, args ...string) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(of.addr)
	s := Redis(t, append([]string{"--replicaof", host + " " + port}, args...)...)
	err := s.until(func() bool {
		info, err := s.Do("INFO", "replication")
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	if err != nil {
		t.Fatalf("replica at %s of %s: %v\n%s", s.addr, of.addr, err, s.log())
	}
	return s
}

// CaughtUp waits until a replica has everything that its server has received.
func (s *Server) CaughtUp(of *Server) {
	s.t.Helper()
	err := s.until(func() bool {
		a, err1 := s.offset("slave_repl_offset:")
		b, err2 := of.offset("master_repl_offset:")
		return err1 == nil && err2 == nil && a == b
	})
	if err != nil {
		s.t.Fatalf("replica at %s does not catch up: %v", s.addr, err)
	}
}

func (s *Server) offset(name string) (string, error) {
	info, err := s.Do("INFO", "replication")
	_, rest, _ := strings.Cut(info, name)
	value, _, _ := strings.Cut(rest, "\r\n")
	return value, err
}

// Promote makes a replica independent, as a sentinel does after its server fails.
func (s *Server) Promote() { s.must("REPLICAOF", "NO", "ONE") }

// Follow makes a server a replica of another and replaces its data.
func (s *Server) Follow(of *Server) {
	host, port, _ := net.SplitHostPort(of.addr)
	s.must("REPLICAOF", host, port)
}

// Sentinel starts a sentinel that watches a server under a name and promotes a replica after it fails.
func Sentinel(t TB, name string, of *Server) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(of.addr)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 200\nsentinel failover-timeout %s 2000\n", name, host, port, name, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatalf("sentinel: %v", err)
	}
	s := run(t, []string{file, "--sentinel"})
	err := s.until(func() bool { // the sentinel asks the server for replicas every few seconds
		info, err := s.Do("SENTINEL", "REPLICAS", name)
		return err == nil && info != ""
	})
	if err != nil {
		t.Fatalf("sentinel at %s knows no replica of %s: %v\n%s", s.addr, of.addr, err, s.log())
	}
	return s
}

// Keys returns all keys of the server, one per line.
func (s *Server) Keys() string { return s.must("KEYS", "*") }
