//go:build !unix

package run

import (
	"os"
	"os/exec"
)

// checkPrivate returns an error unless path is a directory.
func checkPrivate(path string) error {
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		return notPrivate(path)
	}
	return err
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err == nil {
		_ = p.Release()
	}
	return err == nil
}

var heard = []os.Signal{os.Interrupt}

// passes reports false: the console sends interrupts to all of its processes.
func passes(os.Signal) bool { return false }

func statusOf(s *os.ProcessState) int { return s.ExitCode() }

// replace runs the command.
func replace(o Options) (int, error) {
	c := exec.Command(o.Command[0], o.Command[1:]...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = o.Env, o.In, o.Out, o.Err
	if err := c.Start(); err != nil {
		return startStatus(err), startError(o.Command[0], err)
	}
	_ = c.Wait() // the process state reports how it ended
	return statusOf(c.ProcessState), nil
}
