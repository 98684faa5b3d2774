package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// With ntfy's breaker open, messages fail immediately. The log has their IDs, and people are notified.
func TestWhileNtfyIsAwayMessagesFail(t *testing.T) {
	told := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Kind, Upstream, Detail string }
		_ = json.NewDecoder(r.Body).Decode(&m)
		told <- m.Kind + " " + m.Upstream + " " + m.Detail
	}))
	t.Cleanup(hook.Close)
	t.Setenv("ALERTS_URL", hook.URL)
	t.Setenv("ALERTS_SECRET", "of both, 16 bytes or more")
	w := newWorld(t, nil)
	w.ntfy.plays(away)
	var ids []string
	for i := range 30 {
		ids = append(ids, w.post("prod", fmt.Sprint(i)))
	}
	for _, id := range ids {
		line := w.log.wait(t, "message failed", of(id))
		if line["level"] != "ERROR" || line["reason"] != "ntfy.sh service unavailable" {
			t.Errorf("the log says %v", line)
		}
		if m := w.ask("GET", "/api/messages/"+id, ""); m.Status != Failed || m.Reason != "ntfy.sh service unavailable" || m.Notification != None {
			t.Errorf("%s", m.text)
		}
	}
	var breaker, dead bool
	for !breaker || !dead {
		m := <-told
		breaker, dead = breaker || strings.HasPrefix(m, "breaker_open ntfy"), dead || strings.HasPrefix(m, "dead_letter ntfy-prod 1, reason unavailable")
	}
	if got := w.ask("GET", "/api/messages?status=failed", ""); len(got.Messages) != len(ids) {
		t.Errorf("%d of %d are listed", len(got.Messages), len(ids))
	}
	if n := w.ntfy.requests(); n >= 2*len(ids) {
		t.Errorf("%d requests for %d messages: the breaker did not open", n, len(ids))
	}
}

// With "wait" configured, messages wait, and are sent when ntfy recovers.
func TestWhileNtfyIsAwayMessagesWaitWhereTheyAreTo(t *testing.T) {
	w := newWorld(t, func(w *world) { w.o.Choices.Open = "wait" })
	w.ntfy.plays(func(n int, to http.ResponseWriter) bool { return n <= 12 && away(n, to) })
	var ids []string
	for i := range 15 {
		ids = append(ids, w.post("dev", fmt.Sprint(i)))
	}
	for _, id := range ids {
		w.log.wait(t, "message sent", of(id))
	}
	if got := w.ask("GET", "/api/messages?status=failed", ""); len(got.Messages) != 0 {
		t.Errorf("failed: %s", got.text)
	}
}

// A message that ntfy rejects is not retried.
func TestWhatNtfyRejectsFails(t *testing.T) {
	w := newWorld(t, func(w *world) { w.o.Topic = "no/topic" })
	id := w.post("dev", "one")
	w.log.wait(t, "message failed", of(id))
	if m := w.ask("GET", "/api/messages/"+id, ""); m.Status != Failed || m.Reason != "rejected" || m.Notification != None || m.Attempts != 1 {
		t.Errorf("%s", m.text)
	}
}

// After a lost response ntfy may have the message. The configuration decides whether it is sent again.
func TestWhereTheAnswerWasLost(t *testing.T) {
	for _, tt := range []struct {
		lost, line string
		status     Status
		reason     string
		is         Notification
		requests   int
	}{
		{"again", "message sent", Sent, "", Made, 2},
		{"stop", "message failed", Failed, "unknown", Unknown, 1},
	} {
		w := newWorld(t, func(w *world) { w.o.Choices.Lost = tt.lost })
		w.ntfy.plays(func(n int, to http.ResponseWriter) bool { return n == 1 && hangsUp(n, to) })
		id := w.post("dev", "one")
		w.log.wait(t, tt.line, of(id))
		m := w.ask("GET", "/api/messages/"+id, "")
		if m.Status != tt.status || m.Reason != tt.reason || m.Notification != tt.is || w.ntfy.requests() != tt.requests {
			t.Errorf("%s: %s after %d requests", tt.lost, m.text, w.ntfy.requests())
		}
	}
}

// A message that certainly did not reach ntfy is retried. The configuration for lost responses does not matter.
func TestWhatNeverReachedNtfyIsNotThere(t *testing.T) {
	w := newWorld(t, func(w *world) { w.o.Choices.Lost = "stop" })
	w.ntfy.Close()
	id := w.post("dev", "one")
	w.log.wait(t, "message failed", of(id))
	if m := w.ask("GET", "/api/messages/"+id, ""); m.Reason != "ntfy.sh service unavailable" || m.Attempts != 4 || m.Notification != None {
		t.Errorf("%s", m.text)
	}
}

// binary builds the program once and returns its path.
var binary = sync.OnceValues(func() (string, error) {
	file := filepath.Join(built, "messages")
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", file, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

// process runs the program in a separate process on the world's file.
func (w *world) process(ntfy string) (kill func()) {
	w.t.Helper()
	file, err := binary()
	if err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command(file, "-listen", "127.0.0.1:0", "-file", w.o.File, "-ntfy", ntfy, "-topic", "team", "-jwks", w.o.JWKS, "-issuer", w.o.Issuer, "-lost", w.o.Choices.Lost)
	c.Stderr = &split{to: w.log}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	w.t.Cleanup(kill)
	w.url = "http://" + fmt.Sprint(w.log.wait(w.t, "serves", nil)["address"])
	return kill
}

// A killed process loses no message. ntfy may have the claimed ones, and the configuration decides whether they are sent again.
// The kill is before sending, before the response, or around recording.
func TestAProcessIsKilled(t *testing.T) {
	for _, lost := range []string{"again", "stop"} {
		for _, at := range []string{"claimed", "sent", "answered"} {
			t.Run(at+", "+lost, func(t *testing.T) {
				w := newWorld(t, nil)
				w.stop()
				w.o.Choices.Lost, w.o.File = lost, filepath.Join(t.TempDir(), "messages.db")
				first := w.ntfy.URL
				reached, hold := make(chan struct{}), make(chan struct{})
				switch at {
				case "claimed": // ntfy accepts connections but does not read
					deaf, err := net.Listen("tcp", "127.0.0.1:0")
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { deaf.Close() })
					first = "http://" + deaf.Addr().String()
					go func() {
						if _, err := deaf.Accept(); err == nil {
							close(reached)
						}
					}()
				case "sent":
					w.ntfy.plays(func(n int, _ http.ResponseWriter) bool {
						if n == 1 {
							close(reached)
							<-hold
						}
						return n == 1
					})
				}
				kill := w.process(first)
				id := w.post("prod", "one")
				if at == "answered" {
					<-w.ntfy.got
				} else {
					<-reached
				}
				kill()
				close(hold)
				before := w.ntfy.requests()
				w.process(w.ntfy.URL)
				m := w.ask("GET", "/api/messages/"+id, "")
				if !(m.Status == Sent && at == "answered") { // otherwise it was recorded
					line := map[string]string{"again": "message sent", "stop": "message failed"}[lost]
					w.log.wait(t, line, of(id))
					m = w.ask("GET", "/api/messages/"+id, "")
					before += map[string]int{"again": 1}[lost]
					if lost == "stop" && (m.Status != Failed || m.Reason != "unknown" || m.Notification != Unknown) || lost == "again" && (m.Status != Sent || m.Notification != Made) {
						t.Errorf("%s", m.text)
					}
				}
				if n := w.ntfy.requests(); n != before {
					t.Errorf("%d requests, want %d", n, before)
				}
			})
		}
	}
}
