//go:build unix

package servers

import "syscall"

// Stop halts the process where it stands, as SIGSTOP does: its port still accepts connections, and
// nothing answers.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Cont lets it go on.
func (s *Server) Cont() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal %v to the server at %s: %v", sig, s.addr, err)
	}
}
