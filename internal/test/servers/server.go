package servers

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// TB is the part of testing.TB that a server needs. Programs can also implement it.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// patience is the timeout for a server to start, to end or to catch up.
const patience = 10 * time.Second

// A Server is a process on a free loopback port. It ends with the test, and at the latest with the program.
type Server struct {
	t       TB
	addr    string
	dir     string                                 // separate directory
	command func(s *Server, port string) *exec.Cmd // returns the command
	ready   func(s *Server) bool                   // reports whether it responds

	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// launch starts a server on a free port.
func launch(t TB, s *Server) *Server {
	t.Helper()
	s.t, s.dir = t, t.TempDir()
	t.Cleanup(s.end)
	var err error
	for range 5 { // outside of Linux another process may take the port between its choice and its use
		s.addr = "127.0.0.1:" + strconv.Itoa(portOfNode(t))
		if err = s.start(); err == nil {
			return s
		}
		s.end()
	}
	t.Fatalf("the server does not start: %v\n%s", err, s.log())
	return nil
}

// Port returns a port of 127.0.0.1 for a server that needs a fixed port. It is reserved until the test ends, also while the
// server does not run. Otherwise another process could take it.
func Port(t TB) int {
	t.Helper()
	port, release, err := claim(0)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(release)
	return port
}

// portOfNode is Port, and also reserves the port 10,000 above it, which a node of a cluster uses.
func portOfNode(t TB) int {
	t.Helper()
	var err error
	for range 100 {
		port, release, bad := claim(0)
		if err = bad; err != nil {
			break
		}
		t.Cleanup(release)
		if port > 55_000 {
			continue
		}
		if _, release, err = claim(port + 10_000); err == nil {
			t.Cleanup(release)
			return port
		}
	}
	t.Fatalf("no free port: %v", err)
	return 0
}

// start runs the process and waits until it responds.
func (s *Server) start() error {
	_, port, _ := net.SplitHostPort(s.addr)
	cmd, done := s.command(s, port), make(chan struct{})
	started := make(chan error)
	go func() {
		// The process ends with the thread that started it, so that thread must live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		endWithParent(cmd)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
		close(done)
	}()
	if err := <-started; err != nil {
		return err
	}
	s.cmd, s.done = cmd, done
	return s.until(func() bool { return s.ready(s) })
}

// until waits for a condition of a running server.
func (s *Server) until(ok func() bool) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if ok() {
			return nil
		}
		select {
		case <-s.done:
			return errors.New("the server has ended")
		case <-time.After(2 * time.Millisecond):
		}
	}
	return errors.New("timed out")
}

func (s *Server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text)
}

// Addr is host:port.
func (s *Server) Addr() string { return s.addr }

// Kill kills the process and waits until it has ended.
func (s *Server) Kill() { s.end() }

func (s *Server) end() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		<-s.done
	}
}

// Restart starts a killed server again at its old address, empty.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatalf("restart of the server at %s: %v\n%s", s.addr, err, s.log())
	}
}
