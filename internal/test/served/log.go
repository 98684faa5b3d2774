package served

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"
)

// A Line is one line of the log.
type Line struct {
	Msg, Level, Error, By, Listen, Admin, Decide, Client string

	GRPC string `json:"decide.grpc"`
}

// log is the log of a weir.
type log struct {
	t     testing.TB
	lines chan Line // lines that no test has waited for

	mu  sync.Mutex
	all bytes.Buffer
}

func newLog(t testing.TB) *log { return &log{t: t, lines: make(chan Line, 10_000)} }

// Write receives a line.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := bytes.TrimRight(b, "\n")
	l.all.Write(text)
	l.all.WriteByte('\n')
	var line Line
	if json.Unmarshal(text, &line) != nil && line.Msg == "" {
		line.Msg = string(text)
	}
	select {
	case l.lines <- line:
	default: // the channel is full
	}
	return len(b), nil
}

// Log returns weir's log so far.
func (l *log) Log() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// WaitFor waits for a line of the log.
func (l *log) WaitFor(msg string) Line {
	l.t.Helper()
	late := time.After(Patience)
	for {
		select {
		case line := <-l.lines:
			if line.Msg == msg {
				return line
			}
		case <-late:
			l.t.Fatalf("weir did not say %q within %v, but:\n%s", msg, Patience, l.Log())
		}
	}
}
