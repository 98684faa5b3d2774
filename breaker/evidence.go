package breaker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// maxCallers bounds how many callers an evidence tells apart. Those beyond it are one.
const maxCallers = 10_000

// evidence counts the failures of each caller, so that one caller cannot open a breaker for others: while two or more
// are active, one supplies at most half of the failures that the breaker hears of. What is held back of a caller is
// reported once others have failures too. The zero evidence is empty. It is safe for concurrent use.
type evidence struct {
	seen atomic.Pointer[sync.Map] // when each caller was last noted as active, *atomic.Int64 by name

	mu          sync.Mutex // a leaf
	began       time.Duration
	now, before span
	all, most   int64 // failures of both, and those of the caller that has most
	callers     int
}

// A span is what happened in one window.
type span struct {
	failures map[string]int64 // by caller; 0 of one that is active and has none
	reported int64
}

// ReportOf is Report of a call of a caller that was authenticated, whose name is caller.
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

// Active notes that a caller uses what the breaker guards.
func (b *Breaker) Active(now time.Duration, caller string) {
	b.evidence.active(now, b.load().cfg.Window, caller)
}

// active notes a caller, four times per window at most.
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
	if m = e.seen.Load(); m == nil || len(e.now.failures) >= maxCallers {
		m = new(sync.Map)
		e.seen.Store(m)
	}
	at, _ := m.LoadOrStore(caller, new(atomic.Int64))
	at.(*atomic.Int64).Store(int64(now))
}

// failed counts a failure of a caller, and returns how many failures the breaker is to hear of now.
func (e *evidence) failed(now, window time.Duration, caller string) (n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.turn(now, window)
	caller = e.caller(caller)
	e.now.failures[caller]++
	e.all++
	e.most = max(e.most, e.now.failures[caller]+e.before.failures[caller])
	heard := e.all
	if e.callers > 1 {
		heard = min(heard, 2*(e.all-e.most))
	}
	n = max(0, heard-e.now.reported-e.before.reported)
	e.now.reported += n
	return n
}

// caller has a caller among those of the present window, and returns the name by which it is counted. The lock is held.
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

// turn begins another window if the present one is over. The lock is held.
func (e *evidence) turn(now, window time.Duration) {
	switch since := now - e.began; {
	case e.now.failures == nil || since >= 2*window:
		e.before, e.now, e.began = span{}, span{failures: make(map[string]int64)}, now
	case since >= window:
		e.before, e.now, e.began = e.now, span{failures: make(map[string]int64)}, e.began+window
		e.seen.Store(nil) // who is active is noted in each window
	default:
		return
	}
	e.all, e.most, e.callers = 0, 0, len(e.before.failures)
	for _, n := range e.before.failures {
		e.all, e.most = e.all+n, max(e.most, n)
	}
}
