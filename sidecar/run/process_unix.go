//go:build unix

package run

import (
	"os"
	"os/exec"
	"syscall"
)

// checkPrivate returns an error unless path is a directory that only this user can access.
func checkPrivate(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ok || int(stat.Uid) != os.Getuid() {
		return notPrivate(path)
	}
	return nil
}

func alive(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

// heard lists the signals that do not end weir while the command runs.
var heard = []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// passes reports whether weir forwards a signal. A terminal sends SIGINT and SIGQUIT to the whole process group, so the
// command has already received them.
func passes(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return true
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return true // no terminal: only weir received the signal
	}
	_ = tty.Close()
	return false
}

// statusOf returns the exit status of an ended command.
func statusOf(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

// replace replaces this process by the command.
func replace(o Options) (int, error) {
	path, err := exec.LookPath(o.Command[0])
	if err == nil {
		err = syscall.Exec(path, o.Command, o.Env)
	}
	return startStatus(err), startError(o.Command[0], err)
}
