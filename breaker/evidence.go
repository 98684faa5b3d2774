package breaker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// maxCallers is the maximum number of distinct callers. Further callers are combined.
const maxCallers = 10_000

// evidence counts the failures of each caller, so that one caller cannot open a breaker for others. While two or more callers are
// active, one supplies at most half of the failures that are reported to the breaker. The excess of a caller is reported once
// other callers have failures as well. The zero evidence is empty. It is safe for concurrent use.
type evidence struct {
	seen atomic.Pointer[sync.Map] // last recorded activity of each caller, *atomic.Int64 by name

	mu          sync.Mutex // a leaf lock: no other is taken while it is held
	began       time.Duration
	now, before span
	all, most   int64 // failures in both spans: of all callers, and of the caller with the most
	callers     int
	latest      [2]activity // of the last two callers; the caller of the latest first
}

// An activity is the last recorded use by a caller.
type activity struct {
	caller string
	at     time.Duration
}

// activeFor is how long a caller stays active without a call. It is longer than most waits: a caller whose calls wait behind
// those of another one is active.
const activeFor = 45 * time.Second

// A span has the failures of one window.
type span struct {
	failures map[string]int64 // by caller; 0 for an active caller without failures
	reported int64
}

// ReportOf is Report for a call of the authenticated caller named caller.
func (b *Breaker) ReportOf(now time.Duration, p Ticket, o outcome.Outcome, caller string) {
	s := b.load()
	if caller == "" || p.Probe || s.Phase != Closed || s.Gen != p.Gen || s.cfg.judge(o.Class) != broken {
		b.Report(now, p, o)
		return
	}
	for range b.evidence.failed(now, s.cfg.Window, caller) {
		b.Report(now, p, o)
	}
}

// Active records that a caller uses what the breaker guards.
func (b *Breaker) Active(now time.Duration, caller string) {
	b.evidence.active(now, b.load().cfg.Window, caller)
}

// active records a caller, at most four times per window.
func (e *evidence) active(now, window time.Duration, caller string) {
	m := e.seen.Load()
	if m != nil {
		if at, ok := m.Load(caller); ok && now-time.Duration(at.(*atomic.Int64).Load()) < window/4 {
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.turn(now, window)
	e.caller(caller)
	if e.latest[0].caller != caller {
		e.latest[1] = e.latest[0]
	}
	e.latest[0] = activity{caller, now}
	if m = e.seen.Load(); m == nil || len(e.now.failures) >= maxCallers {
		m = new(sync.Map)
		e.seen.Store(m)
	}
	at, _ := m.LoadOrStore(caller, new(atomic.Int64))
	at.(*atomic.Int64).Store(int64(now))
}

// failed counts a failure of a caller, and returns the number of failures to report to the breaker now.
func (e *evidence) failed(now, window time.Duration, caller string) (n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.turn(now, window)
	name := caller
	caller = e.caller(caller)
	e.now.failures[caller]++
	e.all++
	e.most = max(e.most, e.now.failures[caller]+e.before.failures[caller])
	heard := e.all
	if e.callers > 1 || e.other(now, name) {
		heard = min(heard, 2*(e.all-e.most))
	}
	n = max(0, heard-e.now.reported-e.before.reported)
	e.now.reported += n
	return n
}

// other reports whether a caller other than the named one is active. The caller holds mu.
func (e *evidence) other(now time.Duration, name string) bool {
	for _, a := range e.latest {
		if a.caller != "" && a.caller != name && now-a.at < activeFor {
			return true
		}
	}
	return false
}

// caller adds a caller to the current window, and returns the name under which it is counted. The caller holds mu.
func (e *evidence) caller(name string) string {
	if _, ok := e.now.failures[name]; !ok {
		if len(e.now.failures) >= maxCallers {
			name = ""
		}
		if _, ok := e.now.failures[name]; !ok {
			e.now.failures[name] = 0
			if _, ok := e.before.failures[name]; !ok {
				e.callers++
			}
		}
	}
	return name
}

// turn begins a new window if the current one is over. The caller holds mu.
func (e *evidence) turn(now, window time.Duration) {
	switch since := now - e.began; {
	case e.now.failures == nil || since >= 2*window:
		e.before, e.now, e.began = span{}, span{failures: make(map[string]int64)}, now
	case since >= window:
		e.before, e.now, e.began = e.now, span{failures: make(map[string]int64)}, e.began+window
		e.seen.Store(nil) // activity is recorded in each window
	default:
		return
	}
	e.all, e.most, e.callers = 0, 0, len(e.before.failures)
	for _, n := range e.before.failures {
		e.all, e.most = e.all+n, max(e.most, n)
	}
}
