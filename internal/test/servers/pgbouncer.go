package servers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// PgBouncer starts a pooler in front of a Postgres, which gives each transaction one of few connections. PostgresURL returns
// its URL.
func PgBouncer(t TB, of *Server) *Server {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // not in most users' path
	}
	dir, err := os.MkdirTemp("", "weir-pgbouncer-")
	if err != nil {
		t.Fatalf("pgbouncer: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := giveToNobody(dir); err != nil {
		t.Fatalf("pgbouncer: %v", err)
	}
	host, port, _ := net.SplitHostPort(of.addr)
	return launch(t, &Server{ready: greets, command: func(s *Server, own string) *exec.Cmd {
		text := fmt.Sprintf("[databases]\n* = host=%s port=%s user=weir\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\n"+
			"pool_mode = transaction\ndefault_pool_size = 4\nignore_startup_parameters = search_path\n", host, port, own)
		file := filepath.Join(dir, "ini")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatalf("pgbouncer: %v", err)
		}
		cmd := exec.Command(program, file)
		cmd.Dir = dir
		if log, err := os.Create(filepath.Join(s.dir, "log")); err == nil {
			cmd.Stdout, cmd.Stderr = log, log
		}
		asNobody(cmd)
		return cmd
	}})
}
