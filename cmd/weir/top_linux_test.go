package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A pseudo is a terminal that a test types into and reads.
type pseudo struct {
	*os.File // the test's side
	tty      *os.File
	mu       sync.Mutex
	seen     strings.Builder
}

func newPseudo(t *testing.T) *pseudo {
	t.Helper()
	p := new(pseudo)
	var err error
	if p.File, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	fd := int(p.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if p.tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.tty.Close() })
	go func() {
		text := make([]byte, 4096)
		for {
			n, err := p.Read(text)
			p.mu.Lock()
			p.seen.Write(text[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pseudo) size(t *testing.T, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(p.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}); err != nil {
		t.Fatal(err)
	}
}

// sees waits until the latest frame contains a text.
func (p *pseudo) sees(t *testing.T, what string) {
	t.Helper()
	eventually(t, what, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		all := p.seen.String()
		return strings.Contains(all[max(0, strings.LastIndex(all, "\x1b[H")):], what)
	})
}

// On a terminal top updates the view, handles keys, follows the size, and restores the terminal.
func TestTopInATerminal(t *testing.T) {
	s := two(t).Serve.Admin
	p := newPseudo(t)
	p.size(t, 80, 24)
	before, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		done <- run(ctx, world{args: []string{"top", "-admin", s}, in: p.tty, out: p.tty, err: io.Discard, env: noEnv})
	}()
	p.sees(t, "2 upstreams")
	p.sees(t, "mail ")
	if err := run(ctx, world{args: []string{"pause", "api", "-for", "1h", "-admin", s}, out: io.Discard, err: io.Discard, env: noEnv}); err != nil {
		t.Fatal(err)
	}
	p.sees(t, "1 paused")
	if _, err := p.WriteString("/ma\r"); err != nil {
		t.Fatal(err)
	}
	p.sees(t, "filter (ma)")
	p.size(t, 30, 9)
	p.sees(t, "q quit  / filter (ma)  s sort…")
	if _, err := p.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	after, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v", err)
	}
	p.sees(t, leaveScreen)
}
