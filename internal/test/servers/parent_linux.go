package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// endWithParent makes the process end with the thread that starts it, even if the program is killed.
func endWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// childrenOf returns the child processes of a process.
func childrenOf(pid int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(text), ") ")
		var state string
		var parent, child int
		fmt.Sscan(filepath.Base(filepath.Dir(path)), &child)
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && parent == pid {
			all = append(all, child)
		}
	}
	return all
}
