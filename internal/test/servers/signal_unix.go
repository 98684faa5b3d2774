//go:build unix

package servers

import (
	"os"
	"os/exec"
	"syscall"
)

// Stop halts the process and its children, as SIGSTOP does: its port still accepts connections, but nothing responds.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Cont resumes them.
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

// Shut stops the server as a shutdown of its machine would, and waits for its end.
func (s *Server) Shut() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		s.t.Fatalf("interrupt the server at %s: %v", s.addr, err)
	}
	<-s.done
}

// nobody is the user and group without permissions.
const nobody = 65534

// asNobody runs a command without root's permissions, if this process is root.
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
