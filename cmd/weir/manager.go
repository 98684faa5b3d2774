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

// A manager is who started this process and wants to know how it is, as sd_notify(3) of systemd says; nil if it is nobody.
type manager struct {
	socket net.Conn
	beat   time.Duration // how often it wants to hear that the process goes on; 0 for never
}

// managerOf is the manager that an environment names. One that cannot be reached is none: weir serves all the same.
func managerOf(env func(string) (string, bool), pid int) *manager {
	name, _ := env("NOTIFY_SOCKET")
	if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "@") { // @ is a name that is in no file system
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

// tell tells it.
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
	for range 2 { // a process that stood still meanwhile has not tried
		_ = m.socket.SetWriteDeadline(time.Now().Add(time.Second)) // who does not listen costs no more
		if _, err := m.socket.Write([]byte(says)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// longestStatus bounds what is said in words: a message has to fit a datagram.
const longestStatus = 1000

func (m *manager) close() { _ = m.socket.Close() }
