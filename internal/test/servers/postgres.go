package servers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Postgres starts a PostgreSQL with an empty database, which the tests own, and waits until it responds. For root it runs as
// the user nobody, because it refuses root. Commits are on disk, as on a real server.
func Postgres(t TB, settings ...string) *Server {
	t.Helper()
	return postgres(t, nil, []string{"-A", "trust"}, settings)
}

// PostgresTLS starts a Postgres with a password and TLS. ca is the file of the authority of its certificate, which is for
// 127.0.0.1.
func PostgresTLS(t TB, password string) (s *Server, ca string) {
	t.Helper()
	now := time.Now()
	cert, key, err := certificate(now.Add(-time.Hour), now.Add(24*time.Hour))
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err = errors.Join(err, os.WriteFile(ca, cert, 0o600)); err != nil {
		t.Fatalf("postgres: %v", err)
	}
	return postgres(t, map[string][]byte{"cert.pem": cert, "key.pem": key, "password": []byte(password)},
		[]string{"-A", "scram-sha-256", "--pwfile=password"}, []string{"ssl=on", "ssl_cert_file=../cert.pem", "ssl_key_file=../key.pem"}), ca
}

// postgres starts a server with additional files in its data directory.
func postgres(t TB, files map[string][]byte, access, settings []string) *Server {
	t.Helper()
	bin := postgresBin(t)
	dir, err := os.MkdirTemp("", "weir-postgres-") // accessible to the server's user, unlike a test's directory
	if err != nil {
		t.Fatalf("postgres: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	if err := giveToNobody(dir); err != nil {
		t.Fatalf("postgres: %v", err)
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(name, text, 0o600), giveToNobody(name)); err != nil {
			t.Fatalf("postgres: %v", err)
		}
	}
	init := exec.Command(filepath.Join(bin, "initdb"), append(access, "-D", data, "-U", "weir", "-E", "UTF8", "--locale=C", "--no-sync")...)
	init.Dir = dir
	asNobody(init)
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	return launch(t, &Server{ready: greets, command: func(s *Server, port string) *exec.Cmd {
		args := []string{"-D", data, "-h", "127.0.0.1", "-p", port, "-k", ""}
		for _, v := range append([]string{"max_connections=100"}, settings...) {
			args = append(args, "-c", v)
		}
		cmd := exec.Command(filepath.Join(bin, "postgres"), args...)
		cmd.Dir = dir
		if log, err := os.Create(filepath.Join(s.dir, "log")); err == nil {
			cmd.Stdout, cmd.Stderr = log, log
		}
		asNobody(cmd)
		return cmd
	}})
}

// postgresBin returns the directory of the newest server's programs, which Debian does not add to the path.
func postgresBin(t TB) string {
	t.Helper()
	if at, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(at)
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(all) == 0 {
		t.Fatalf("postgres: there is no initdb; run make deps")
	}
	sort.Strings(all)
	return filepath.Dir(all[len(all)-1])
}

// greets reports whether the server accepts a client.
func greets(s *Server) bool {
	c, err := net.DialTimeout("tcp", s.addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	words := "user\x00weir\x00database\x00postgres\x00\x00"
	n := 8 + len(words)
	hello := append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 0, 3, 0, 0}, words...)
	if _, err := c.Write(hello); err != nil {
		return false
	}
	var answer [1]byte
	_, err = c.Read(answer[:])
	return err == nil && answer[0] == 'R'
}

// PostgresURL returns the URL for a client's configuration.
func (s *Server) PostgresURL() string {
	return fmt.Sprintf("postgres://weir@%s/postgres?sslmode=disable", s.addr)
}

// Patient returns such a URL for tests without faults: it waits longer for a connection than weir does, for busy machines.
func Patient(at string) string {
	return strings.Replace(at, "?", fmt.Sprintf("?connect_timeout=%d&", int(patience.Seconds())), 1)
}

// Log returns the last lines of the server's log.
func (s *Server) Log() string {
	lines := strings.Split(strings.TrimSpace(s.log()), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
