package run

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A tally counts the calls of the command. The zero value is ready.
type tally struct {
	waited, waitedFor  atomic.Int64 // calls, and total nanoseconds
	throttles, reached atomic.Int64 // throttled attempts, and calls that the command saw throttled
	refused            atomic.Int64
}

func (t *tally) events() weir.Events {
	return weir.Events{
		Throttled: func(weir.Ended) { t.throttles.Add(1) },
		Refused: func(e weir.Refused) time.Duration {
			if e.Upstream == config.CallersName { // such calls reach no upstream, whose Done would count them
				t.refused.Add(1)
			}
			return 0
		},
		Done: func(d weir.Done) {
			if d.Waited >= noticeable {
				t.waited.Add(1)
				t.waitedFor.Add(int64(d.Waited))
			}
			switch {
			case d.Class == outcome.Throttled:
				t.reached.Add(1)
			case d.Refused:
				t.refused.Add(1)
			}
		},
	}
}

// noticeable is the shortest wait that counts.
const noticeable = time.Millisecond

// report writes a line about the run to standard error.
func (r *running) report() {
	c := r.counts
	for _, host := range c.Distrusted {
		r.say("%s: %s rejected weir's certificate: it pins certificates or has its own authorities; --through %s tunnels these calls unread", host, r.Command[0], host)
	}
	waited, throttles, refused := r.tally.waited.Load(), r.tally.throttles.Load(), r.tally.refused.Load()
	switch {
	case c.Calls == 0 && len(c.Tunneled) == 0 && len(c.Distrusted) == 0:
		r.say("saw no call: %s", r.reason())
	case waited+throttles+refused > 0 || len(r.used) > 0 || r.Verbose:
		r.say("%s", r.summary())
	}
}

func (r *running) summary() string {
	t, parts := &r.tally, []string{plural(r.counts.Calls, "call")}
	if n := t.waited.Load(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d waited %v", n, brief(time.Duration(t.waitedFor.Load()))))
	}
	if n := t.throttles.Load(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s reached %s", t.reached.Load(), plural(n, "throttle"), r.Command[0]))
	}
	if n := t.refused.Load(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d refused by weir", n))
	}
	line := strings.Join(parts, ", ")
	if n := len(r.counts.Tunneled); n > 0 {
		line += fmt.Sprintf("; %s tunneled", plural(int64(n), "host"))
	}
	if len(r.used) > 0 {
		line += fmt.Sprintf("; %s used %s", r.Run, strings.Join(r.used, ", "))
	}
	return line
}

func (r *running) say(format string, args ...any) {
	fmt.Fprintf(r.Err, "weir: "+format+"\n", args...)
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// brief rounds a duration for display.
func brief(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// reason returns the likely reason why the command made no calls.
func (r *running) reason() string {
	return fmt.Sprintf("%s made none, or does not use proxies (Node before 22.21, Java)", r.Command[0])
}
