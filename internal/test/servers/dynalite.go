package servers

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Dynalite starts dynalite, which speaks DynamoDB's protocol and keeps its tables in
// memory, with further arguments if there are any, and waits until it answers. A
// restart empties it. Without dynalite the test fails and says how to get it. By itself it ends when a client is
// killed in the midst of a request; here it does not.
func Dynalite(t TB, args ...string) *Server {
	t.Helper()
	path, err := dynalite()
	if err != nil {
		t.Fatalf("dynalite: %v; run make deps", err)
	}
	return launch(t, &Server{ready: speaksHTTP, command: func(s *Server, port string) *exec.Cmd {
		cmd := exec.Command(path, append([]string{"--host", "127.0.0.1", "--port", port, "--createTableMs", "20"}, args...)...)
		outlives := filepath.Join(s.dir, "outlives.cjs")
		if err := os.WriteFile(outlives, []byte(`process.on("uncaughtException", e => { console.error(e); if (e.code !== "ECONNRESET") process.exit(7) })`), 0o600); err == nil {
			cmd.Env = append(os.Environ(), "NODE_OPTIONS=--require="+outlives)
		}
		if log, err := os.Create(filepath.Join(s.dir, "log")); err == nil {
			cmd.Stdout, cmd.Stderr = log, log
		}
		return cmd
	}})
}

// dynalite is where scripts/deps has put it, or else anywhere in the path.
func dynalite() (string, error) {
	if path, err := dependency("npm", "node_modules", ".bin", "dynalite"); err == nil {
		return path, nil
	}
	return exec.LookPath("dynalite")
}

// dependency is a file that scripts/deps has brought, in the .deps of a directory above this one.
func dependency(parts ...string) (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		path := filepath.Join(append([]string{dir, ".deps"}, parts...)...)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return "", os.ErrNotExist
}

func speaksHTTP(s *Server) bool {
	c := http.Client{Timeout: time.Second}
	r, err := c.Get(s.Endpoint())
	if err != nil {
		return false
	}
	r.Body.Close()
	c.CloseIdleConnections()
	return true
}

// Endpoint is where a client of HTTP finds the server.
func (s *Server) Endpoint() string { return "http://" + s.addr }
