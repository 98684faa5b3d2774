package weir

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome"
)

// NoCredential is the Credential of a call without a credential, to an upstream whose other callers send their own.
const NoCredential = "none"

// probeInterval is the time between two calls that test whether a pause of all credentials is justified.
const probeInterval = time.Second

// maxSharedHints bounds how many pools have their hints compared.
const maxSharedHints = 1000

// sharedHints decides whether hints that single credentials received concern all of them. A hint concerns one
// credential until another one has received a hint too. A hint for a call without a credential concerns all,
// since it may be about the address or the whole service. Either can be provoked by one caller. So a credential
// that received no hint itself may send one probe per second, and a probe that succeeds ends the pause and
// outweighs further hints until the pause would have ended. It is safe for concurrent use.
type sharedHints struct {
	mixed atomic.Bool // a call has brought a credential
	good  goodCredentials

	mu    sync.Mutex // a leaf: nothing is called while it is held
	last  map[pause.Subject]sharedHint
	early []pause.Subject // what hints paused before a call brought a credential; at most mostEarly
}

// mostEarly bounds sharedHints.early.
const mostEarly = 64

// noteEarly notes that a hint pauses all calls of a subject, if no call has brought a credential yet.
func (h *sharedHints) noteEarly(of pause.Subject) {
	if h.mixed.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.early) < mostEarly && !slices.Contains(h.early, of) {
		h.early = append(h.early, of)
	}
}

// liftEarly runs when the first call brings a credential. It ends the pauses of hints that calls without a credential
// received: such a call at the start must not stop every credential. If the hint is about all calls, each credential
// receives its own.
func (u *Upstream) liftEarly() {
	h, now := &u.pauses.hints, u.clock.Now()
	h.mu.Lock()
	early := h.early
	h.early = nil
	h.mu.Unlock()
	for _, of := range early {
		if e := u.pauses.In(now, of); e.Until() > now && (e.Reason(now) == pause.Rate || e.Reason(now) == pause.Quota) {
			u.pauses.resumed(now, u.pauses.Lift(now, of, false), ByProbe)
			u.pauses.share()
		}
	}
}

// A sharedHint is the hint that lasts longest of those that credentials received. It is a value.
type sharedHint struct {
	credential, caller string
	until              time.Duration
	refuted            time.Duration // no pause of all credentials begins before then
	probeAt            time.Duration // when the next probe may be sent
	prober             string        // who sent the last probe
}

// allCredentials is the subject of a pause of all credentials: for a pool of a credential and a model, all
// credentials for the model.
func allCredentials(pool, credential string) pause.Subject {
	return pause.OfPool("*" + strings.TrimPrefix(pool, credential))
}

// received notes a hint that lasts until an instant, and returns when the pause of all credentials that follows
// from it ends; 0 if the hint concerns its credential alone.
func (h *sharedHints) received(now time.Duration, of pause.Subject, credential, caller string, until time.Duration) (end time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.entry(now, of)
	if !ok || now < e.refuted {
		return 0
	}
	switch {
	case credential == NoCredential:
		end = until
	case e.until > now && e.credential != credential && (caller == "" || caller != e.caller):
		end = min(e.until, until)
	}
	if until > e.until {
		e.credential, e.caller, e.until = credential, caller, until
	}
	if end > 0 && e.probeAt <= now {
		e.probeAt = now + probeInterval
	}
	h.last[of] = e
	return end
}

// entry returns the hint of a subject, and whether there is room for it. The lock is held.
func (h *sharedHints) entry(now time.Duration, of pause.Subject) (e sharedHint, ok bool) {
	if h.last == nil {
		h.last = make(map[pause.Subject]sharedHint)
	}
	if e, ok = h.last[of]; ok {
		return e, true
	}
	if len(h.last) >= maxSharedHints {
		for of, e := range h.last {
			if max(e.until, e.refuted, e.probeAt) <= now {
				delete(h.last, of)
			}
		}
	}
	return e, len(h.last) < maxSharedHints
}

// probe reports whether a credential may send a probe now, and takes its turn. A credential that has not succeeded
// before, or whose caller sent the last probe, waits a quarter of an interval longer, so that no caller takes all
// turns. If another process began the pause, the first probe of this process is sent one interval later.
func (h *sharedHints) probe(now time.Duration, of pause.Subject, credential, caller string) bool {
	prober := cmp.Or(caller, credential)
	known := h.good.has(credential)
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.entry(now, of)
	first := e.probeAt
	if !known || prober == e.prober {
		first += probeInterval / 4
	}
	if !ok || now < first {
		return false
	}
	started := e.probeAt > 0
	e.probeAt = now + probeInterval
	if started {
		e.prober = prober
	}
	h.last[of] = e
	return started
}

// refute notes that a probe succeeded although hints asked for a pause until an instant.
func (h *sharedHints) refute(now time.Duration, of pause.Subject, until time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.entry(now, of); ok {
		e.refuted, e.until, e.probeAt = max(e.refuted, until), 0, 0
		h.last[of] = e
	}
}

// all returns the subject of a pause of all credentials. It is zero for a call whose hints pause all callers anyway.
func (c concern) all() pause.Subject {
	if c.credential == "" {
		return pause.Subject{}
	}
	return allCredentials(c.pool, c.credential)
}

// probe reports whether a call that a pause of all credentials holds may go as its probe, and notes it. No other
// pause may hold the call: a credential that received a hint itself waits as long as the hint asks.
func (c *concern) probe(now time.Duration, s *stop, limits *limit.Charges) bool {
	if c.credential == "" || c.credential == NoCredential || s.of != c.all() {
		return false
	}
	c.probing = s.Until()
	if c.stopped(now, limits, false).wait > 0 || !c.u.pauses.hints.probe(now, s.of, c.credential, c.caller) {
		c.probing = 0
	}
	return c.probing > 0
}

// probes reports whether the call may proceed as the probe of the pause that holds it.
func (w *walk) probes(s stop) bool {
	c := w.concern()
	ok := c.probe(w.now, &s, &w.limits)
	w.probing = c.probing
	return ok
}

// probes makes the waiting call the probe of the pause that holds it, if it may be.
func (s *waiter) probes(now time.Duration) {
	if s.probe(now, &s.stop, &s.limits) {
		s.stop = stop{charge: -1}
	}
}

// ofCredential gives the permit the pool of its credential. A hint for a call without a credential pauses all calls
// of the same limits, until a call with a credential was seen.
func (p *Permit) ofCredential(u *Upstream) {
	mixed := &u.pauses.hints.mixed
	switch {
	case p.credential != NoCredential:
		if !mixed.Load() && mixed.CompareAndSwap(false, true) {
			u.liftEarly()
		}
	case p.pool == "" && !mixed.Load():
		p.credential = ""
		return
	}
	if p.pool == "" {
		p.pool = p.credential
	}
}

// pauseAll pauses all credentials if the hint applies to them.
func (p *Permit) pauseAll(u *Upstream, now, until time.Duration, e PauseEvent) {
	of := p.all()
	end := u.pauses.hints.received(now, of, p.credential, p.name, until)
	end = min(end, later(now, p.plan.live.policy.MaxPause))
	if end <= now {
		return
	}
	u.pauses.pause(now, of, of.Name, pause.Rate, pause.Span{Until: end, Known: true})
	e.Limit, e.Key, e.Pool, e.For = "", "", of.Name, end-now
	tell(u.options.Events.Paused, e)
}

// all is concern.all. The permit may have been reported.
func (p *Permit) all() pause.Subject { return p.concern().all() }

// probed ends the pause that the attempt has probed, if it succeeded and no hint has lengthened the pause since
// the probe was sent.
func (p *Permit) probed(u *Upstream, now time.Duration, o *outcome.Outcome) {
	if p.credential == "" || o.Own || o.Class != outcome.OK {
		return
	}
	u.pauses.hints.good.add(p.credential)
	if p.probing == 0 {
		return
	}
	of, until := p.all(), p.probing
	p.probing = 0
	e := u.pauses.In(now, of)
	if e.Until() == 0 || e.Until() > until {
		return
	}
	u.pauses.hints.refute(now, of, until)
	u.pauses.resumed(now, u.pauses.Lift(now, of, false), ByProbe)
	u.pauses.share()
}

// maxGood bounds how many credentials a generation of goodCredentials holds.
const maxGood = 1000

// goodCredentials remembers credentials that have succeeded: at least the last maxGood of them. It is safe for
// concurrent use.
type goodCredentials struct {
	recent atomic.Pointer[sync.Map]

	mu     sync.Mutex // of adding
	former *sync.Map
	n      int
}

// has reports whether the credential is remembered.
func (g *goodCredentials) has(credential string) bool {
	if m := g.recent.Load(); m != nil {
		if _, ok := m.Load(credential); ok {
			return true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.former == nil {
		return false
	}
	_, ok := g.former.Load(credential)
	return ok
}

// add remembers a credential. One that is remembered already costs a look-up without a lock.
func (g *goodCredentials) add(credential string) {
	if m := g.recent.Load(); m != nil {
		if _, ok := m.Load(credential); ok {
			return
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.recent.Load()
	if m == nil || g.n >= maxGood {
		g.former, g.n, m = m, 0, new(sync.Map)
		g.recent.Store(m)
	}
	if _, loaded := m.LoadOrStore(credential, nil); !loaded {
		g.n++
	}
}
