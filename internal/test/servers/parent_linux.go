package servers

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the process end with the thread that starts it, even if the
// program is killed.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
