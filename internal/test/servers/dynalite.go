package servers

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Dynalite starts dynalite, an in-memory implementation of DynamoDB, with optional arguments, and waits until it responds. A
// restart empties it. If dynalite is missing, the test fails with instructions. Normally dynalite ends if a client is killed
// during a request, and an interrupt ends it between the writes of an item and of its indexes. Here it does not.
func Dynalite(t TB, args ...string) *Server {
	t.Helper()
	path, err := dynalite()
	if err != nil {
		t.Fatalf("dynalite: %v; run make deps", err)
	}
	return launch(t, &Server{ready: speaksHTTP, command: func(s *Server, port string) *exec.Cmd {
		cmd := exec.Command(path, append([]string{"--host", "127.0.0.1", "--port", port, "--createTableMs", "20"}, args...)...)
		outlives := filepath.Join(s.dir, "outlives.cjs")
		if err := os.WriteFile(outlives, []byte(preload), 0o600); err == nil {
			cmd.Env = append(os.Environ(), "NODE_OPTIONS=--require="+outlives)
		}
		if log, err := os.Create(filepath.Join(s.dir, "log")); err == nil {
			cmd.Stdout, cmd.Stderr = log, log
		}
		return cmd
	}})
}

// preload is run in the process of dynalite before it starts. After an interrupt, dynalite drops new requests and ends when
// those under way are over, or after two seconds.
const preload = `
process.on("uncaughtException", e => { console.error(e); if (e.code !== "ECONNRESET") process.exit(7) })
let ending = false, pending = 0
const leave = () => { if (ending && pending === 0) process.exit() }
process.on("SIGINT", () => { ending = true; setTimeout(process.exit, 2000); leave() })
const http = require("http"), emit = http.Server.prototype.emit
http.Server.prototype.emit = function (event, request, response) {
	if (event === "request") {
		if (ending) return request.socket.destroy()
		pending++
		const end = response.end
		response.end = function (...rest) {
			response.end = end
			const is = end.apply(this, rest)
			pending--
			leave()
			return is
		}
	}
	return emit.apply(this, arguments)
}
`

// dynalite returns the path of dynalite: installed by scripts/deps, or anywhere in the path.
func dynalite() (string, error) {
	if path, err := dependency("npm", "node_modules", ".bin", "dynalite"); err == nil {
		return path, nil
	}
	return exec.LookPath("dynalite")
}

// dependency returns the path of a file that scripts/deps installed, in the .deps of a parent directory.
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

// Endpoint returns the URL of the server.
func (s *Server) Endpoint() string { return "http://" + s.addr }
