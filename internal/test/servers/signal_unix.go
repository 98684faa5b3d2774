//go:build unix

package servers

import (
	"os"
	"os/exec"
	"syscall"
)

// Stop halts the process and those that it has started where they stand, as SIGSTOP does: its port still accepts connections, and
// nothing answers.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Cont lets them go on.
func (s *Server) Cont() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal %v to the server at %s: %v", sig, s.addr, err)
	}
	for _, child := range childrenOf(s.cmd.Process.Pid) {
		_ = syscall.Kill(child, sig) // it may have ended
	}
}

// Shut has the server end as if its machine were shut down, and waits until it has.
func (s *Server) Shut() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		s.t.Fatalf("interrupt the server at %s: %v", s.addr, err)
	}
	<-s.done
}

// nobody is the user and group that has no rights.
const nobody = 65534

// asNobody has a command run without root's rights, if we have them.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

func giveToNobody(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(dir, nobody, nobody)
}
