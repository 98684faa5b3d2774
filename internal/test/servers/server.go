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

// TB is what a server needs of the test, or the program, that starts it. Every
// testing.TB is one.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// patience is how long a server may take to start, to end or to follow.
const patience = 10 * time.Second

// A Server is a process that a test started on a free loopback port and that ends
// with the test, at the latest with the program.
type Server struct {
	t       TB
	addr    string
	dir     string                                 // of its own
	command func(s *Server, port string) *exec.Cmd // that runs it
	ready   func(s *Server) bool                   // whether it answers

	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// launch starts a server on a free port.
func launch(t TB, s *Server) *Server {
	t.Helper()
	s.t, s.dir = t, t.TempDir()
	t.Cleanup(s.end)
	var err error
	for range 5 { // elsewhere than on Linux another may take the port between its choice and its use
		s.addr = "127.0.0.1:" + strconv.Itoa(portOfNode(t))
		if err = s.start(); err == nil {
			return s
		}
		s.end()
	}
	t.Fatalf("the server does not start: %v\n%s", err, s.log())
	return nil
}

// Port is a port of 127.0.0.1 for a server that is told where to listen. It is nobody else's until the test ends, also while the
// server has not begun yet, or is away: one that is only looked for could be another's by then.
func Port(t TB) int {
	t.Helper()
	port, release, err := claim(0)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(release)
	return port
}

// portOfNode is Port, and the one 10,000 above it, which a node of a cluster uses besides.
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

// start runs the process and waits until it answers.
func (s *Server) start() error {
	_, port, _ := net.SplitHostPort(s.addr)
	cmd, done := s.command(s, port), make(chan struct{})
	started := make(chan error)
	go func() {
		// The process is told to end with the thread that started it, so that thread
		// must live as long as the process.
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

// until waits for something to become true of a server that runs.
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

// Kill ends the process at once and waits until it has gone.
func (s *Server) Kill() { s.end() }

func (s *Server) end() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		<-s.done
	}
}

// Restart starts it again at its old address, empty. It must have been killed.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatalf("restart of the server at %s: %v\n%s", s.addr, err, s.log())
	}
}
