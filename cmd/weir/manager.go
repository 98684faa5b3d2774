package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/sidecar/serve"
)

// A manager is the service manager that started this process and receives its state, as in sd_notify(3) of systemd. A nil
// manager receives nothing.
type manager struct {
	socket net.Conn
	beat   time.Duration // interval of watchdog messages; 0 means none
}

// managerOf returns the manager that an environment names. It returns nil if the manager is unreachable, and weir serves
// without it.
func managerOf(env func(string) (string, bool), pid int) *manager {
	name, _ := env("NOTIFY_SOCKET")
	if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "@") { // @ means an abstract name, outside of the file system
		return nil
	}
	socket, err := net.Dial("unixgram", name)
	if err != nil {
		return nil
	}
	m := &manager{socket: socket}
	limit, _ := env("WATCHDOG_USEC")
	whom, only := env("WATCHDOG_PID")
	if us, err := strconv.ParseInt(limit, 10, 64); err == nil && us > 0 && us < 1<<50 && (!only || whom == strconv.Itoa(pid)) {
		m.beat = time.Duration(us) * time.Microsecond / 2
	}
	return m
}

// tell sends a state to the manager.
func (m *manager) tell(s serve.State, text string) {
	var says string
	switch s {
	case serve.Ready:
		says = "READY=1"
	case serve.Reloading:
		says = fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic()/time.Microsecond)
	case serve.Stopping:
		says = "STOPPING=1"
	case serve.Alive:
		says = "WATCHDOG=1"
	}
	if text != "" {
		says += "\nSTATUS=" + strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), longestStatus)], "\n", "; "), "")
	}
	for range 2 { // if the process stalled in the first try, the deadline passed without a write
		_ = m.socket.SetWriteDeadline(time.Now().Add(time.Second)) // a manager that does not read delays weir by at most this
		if _, err := m.socket.Write([]byte(says)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// longestStatus bounds the text of a message, which must fit into a datagram.
const longestStatus = 1000

func (m *manager) close() { _ = m.socket.Close() }
