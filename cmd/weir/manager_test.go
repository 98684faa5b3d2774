//go:build linux

package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/sidecar/serve"
)

// A supervisor receives the messages of a process to its manager immediately, because a socket holds few.
type supervisor struct {
	says  chan string   // all messages except watchdog messages
	alive chan struct{} // contains a value after a watchdog message
}

func supervise(t *testing.T, name string) supervisor {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := supervisor{make(chan string, 100), make(chan struct{}, 1)}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			if said := string(b[:n]); said != "WATCHDOG=1" {
				s.says <- said
				continue
			}
			select {
			case s.alive <- struct{}{}:
			default:
			}
		}
	}()
	return s
}

// next returns the next message that is not a watchdog message.
func (s supervisor) next(t *testing.T) string {
	t.Helper()
	select {
	case said := <-s.says:
		return said
	case <-time.After(patience):
		t.Fatal("nothing is heard")
		return ""
	}
}

// systemd is notified when weir serves, reloads, is alive, and ends, over both kinds of sockets.
func TestSystemdIsTold(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{filepath.Join(dir, "notify"), "@weir-test-" + strconv.Itoa(os.Getpid())} {
		s := supervise(t, name)
		file := filepath.Join(dir, "weir.yaml")
		write(t, file, "http://127.0.0.1:1", "")
		vars := map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": strconv.Itoa(os.Getpid())}
		env := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
		ctx, stop := context.WithCancel(t.Context())
		out, done := clogged{make(chan string)}, make(chan error, 1)
		go func() { done <- run(ctx, world{args: []string{"serve", "-config", file}, err: out, env: env}) }()
		var serving struct{ Admin string }
		if err := json.Unmarshal([]byte(<-out.first), &serving); err != nil {
			t.Fatal(err)
		}
		if got := s.next(t); got != "READY=1\nSTATUS=serving" {
			t.Errorf("at the start: %q", got)
		}
		for _, bad := range []string{"", "nonsense: 7"} {
			write(t, file, "http://127.0.0.1:1", bad)
			before := monotonic()
			err := run(ctx, world{args: []string{"reload", "-admin", serving.Admin}, out: io.Discard, err: io.Discard, env: noEnv})
			if (err == nil) != (bad == "") || err != nil && !strings.Contains(err.Error(), "nonsense") {
				t.Errorf("weir reload: %v", err)
			}
			m := regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=(\d+)\nSTATUS=reading `).FindStringSubmatch(s.next(t))
			if m == nil {
				t.Fatal("it does not say that the file is read")
			}
			if us, _ := strconv.ParseInt(m[1], 10, 64); us < before.Microseconds() || us > monotonic().Microseconds() {
				t.Errorf("the file was read at %d, between %v and %v", us, before, monotonic())
			}
			if got := s.next(t); !strings.HasPrefix(got, "READY=1\nSTATUS=serving") || strings.Contains(got, "nonsense") != (bad != "") || strings.Count(got, "\n") != 1 {
				t.Errorf("when it was read: %q", got)
			}
		}
		select { // remove an earlier one
		case <-s.alive:
		default:
		}
		select {
		case <-s.alive:
		case <-time.After(patience):
			t.Error("while it serves nobody hears that it is alive")
		}
		stop()
		if got := s.next(t); got != "STOPPING=1\nSTATUS=draining" {
			t.Errorf("at the end: %q", got)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A late socket accepts a message after a number of timeouts.
type late struct {
	net.Conn
	times int
	said  []string
}

func (l *late) SetWriteDeadline(time.Time) error { return nil }

func (l *late) Write(b []byte) (int, error) {
	if l.times > 0 {
		l.times--
		return 0, &net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}
	}
	l.said = append(l.said, string(b))
	return len(b), nil
}

// A message that timed out because the process stalled is sent again, once.
func TestWhatIsSaidTooLateIsSaidAgain(t *testing.T) {
	for times, said := range []int{1, 1, 0} {
		l := &late{times: times}
		(&manager{socket: l}).tell(serve.Ready, "")
		if len(l.said) != said || l.times != 0 {
			t.Errorf("too late %d times: %q is said, and %d times are left", times, l.said, l.times)
		}
	}
}

// Variables that are invalid or for another process are ignored.
func TestOnlyOnesOwnManagerIsTold(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	supervise(t, name)
	for _, c := range []struct {
		socket, limit, pid string
		told               bool
		beat               time.Duration
	}{
		{"", "", "", false, 0},
		{"vsock:2:1", "", "", false, 0},
		{name + ".gone", "", "", false, 0},
		{name, "", "", true, 0},
		{name, "2000000", "", true, time.Second},
		{name, "2000000", "7", true, time.Second},
		{name, "2000000", "8", true, 0},
		{name, "-5", "", true, 0},
		{name, "x", "", true, 0},
	} {
		vars := map[string]string{"NOTIFY_SOCKET": c.socket, "WATCHDOG_USEC": c.limit, "WATCHDOG_PID": c.pid}
		m := managerOf(func(name string) (string, bool) { return vars[name], vars[name] != "" }, 7)
		if (m != nil) != c.told || m != nil && m.beat != c.beat {
			t.Errorf("%+v: %+v", c, m)
		}
		if m != nil {
			m.close()
		}
	}
}
