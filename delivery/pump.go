package delivery

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A pump is the dispatcher of one upstream: it sends due deliveries.
type pump struct {
	w        *Worker
	upstream string
	kicked   chan struct{}

	mu      sync.Mutex
	inHand  map[int64]*flight // by Seq: deliveries that wait for their turn or are being sent
	opened  int64             // the number of openings so far
	waiting list.List         // flights that wait for their gates and block later ones, the first one first
	ending  int               // flights whose attempt is over but not recorded yet
	until   time.Time         // no attempts before this time: the queue failed, or the upstream is missing
	probes  bool              // after until, one attempt is made before any other
	away    bool              // the breaker refused the latest call
	good    int               // attempts that the upstream answered, successfully or with a rejection, since the start or since the breaker refused calls
	full    bool              // there may be more due deliveries than the pump has in hand

	closed  map[string]*closed // groups with a delivery that a gate refused
	known   map[int64]string   // by Seq: recent deliveries that wait behind a closed group, with the group
	after   Mark               // where the scan continues; zero unless a group is closed
	started time.Time          // when the scan began at the first delivery
	seen                       // the part of the scan that need not be repeated
}

func newPump(w *Worker, upstream string) *pump {
	return &pump{w: w, upstream: upstream, kicked: make(chan struct{}, 1), inHand: make(map[int64]*flight), closed: make(map[string]*closed), known: make(map[int64]string)}
}

func (p *pump) kick() {
	select {
	case p.kicked <- struct{}{}:
	default:
	}
}

func (p *pump) run() {
	ctx := p.w.pumpCtx
	for ctx.Err() == nil {
		t := time.NewTimer(p.round(ctx))
		select {
		case <-p.kicked:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// round sends as many due deliveries as allowed. It returns how long the pump may sleep unless it is kicked.
func (p *pump) round(ctx context.Context) time.Duration {
	room, taken, wait := p.room()
	if room == 0 {
		return wait
	}
	room -= p.try(ctx, room)
	var last Mark // of the deliveries that were read
	for more := room > 0 && !p.skips(ctx); more && room > 0; {
		most, began, at := p.page(room+taken), time.Now(), p.from()
		due, err := p.w.Queue.Due(ctx, p.upstream, at, most)
		if err != nil {
			p.w.failed(ctx, "find due deliveries", p.upstream, err)
			return min(time.Second, p.w.Poll)
		}
		p.mu.Lock()
		p.full = len(due) == most
		p.mu.Unlock()
		moved, was := false, room
		for i := range due {
			last = due[i].Mark()
			if room == 0 { // flights ended after the read, and the deliveries in their places are due
				p.isFull()
				break
			}
			if p.begin(&due[i], p.groupOf(&due[i]), false) {
				room--
			}
			at, moved = p.passed(at, &due[i])
		}
		more = moved && len(due) == most && !p.skips(ctx)
		if more && room == was { // all were skipped, however many: leave CPU time for other work
			p.w.rest(ctx, time.Since(began))
		}
	}
	return p.next(ctx, last)
}

func (p *pump) isFull() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = true
}

// takes sends a delivery that was just accepted without reading the queue. It returns false if there is no capacity or
// if earlier deliveries wait.
func (p *pump) takes(d Delivery) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.free(0) || d.Status != Queued || !d.NotBefore.IsZero() {
		return false
	}
	d.Header = d.Header.Clone() // the caller may change it
	return p.starts(&d, "", false)
}

// free reports whether a delivery that has just arrived may be sent immediately. That requires that no group is closed.
// If due deliveries are waiting, only the given number of attempts may be under way, so that the pump still reads the
// queue. p.mu is held.
func (p *pump) free(beside int) bool {
	most := p.most()
	if p.full {
		most = min(most, beside)
	}
	return p.attempts() < most && !p.probes && len(p.closed) == 0 && time.Until(p.until) <= 0 && p.w.pumpCtx.Err() == nil
}

// attempts returns how many attempts are at the upstream or will be. An attempt that is over but not recorded is no
// load for the upstream. If too many of these have accumulated, they count too. p.mu is held.
func (p *pump) attempts() int {
	if p.ending >= 3*p.w.Parallel {
		return len(p.inHand)
	}
	return len(p.inHand) - p.ending
}

// gently is how many concurrent attempts an upstream gets before its first response. If it is down, each attempt is
// consumed.
const gently = 8

// most returns the maximum number of concurrent attempts, which grows by one with each response counted by good. p.mu
// is held.
func (p *pump) most() int { return min(p.w.Parallel, gently+p.good) }

// page returns how many deliveries to read if most may begin. It reads more if it may have to skip some.
func (p *pump) page(most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.closed) > 0 {
		most = max(most, p.w.Parallel)
	}
	return most
}

// room returns how many attempts may begin. If more deliveries are due than may begin, room returns 0 until half of the
// attempts have ended, because each read returns the deliveries in hand again.
func (p *pump) room() (room, taken int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := time.Until(p.until); d > 0 {
		return 0, 0, min(d, p.w.Poll)
	}
	most := p.most()
	if p.probes {
		most = 1
	}
	taken = p.attempts()
	if taken >= most || p.full && taken > most/2 {
		p.full = true // the deliveries that caused the kick wait
		return 0, taken, p.w.Poll
	}
	return most - taken, taken, 0
}

// next returns how long no delivery is due after the mark looked. Those up to the mark are in hand, or kick the pump
// when there is capacity.
func (p *pump) next(ctx context.Context, looked Mark) time.Duration {
	after := p.from()
	if after.Before(looked) {
		after = looked
	}
	at, ok, err := p.w.Queue.Next(ctx, p.upstream, after)
	if err != nil || !ok {
		at = time.Now().Add(p.w.Poll)
	}
	d := time.Until(at)
	if p.mu.Lock(); d <= 0 && len(p.inHand) > 0 { // it became due since, or another process is sending it
		d = shortestHold
	}
	d = p.soonest(d)
	p.mu.Unlock()
	return min(max(d, time.Millisecond), p.w.Poll)
}

func (p *pump) from() Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.after
}

// passed advances the scan from at to a delivery if a group is closed, unless the scan was moved back meanwhile.
func (p *pump) passed(at Mark, d *Delivery) (now Mark, moved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.closed) == 0 {
		return at, false
	}
	if p.after == at {
		p.after = d.Mark()
	}
	return p.after, true
}

// begin sends a delivery unless it is being sent already or its group is closed. A probe is sent even then, to find out
// whether the gates let the group through.
func (p *pump) begin(d *Delivery, group string, probe bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts(d, group, probe)
}

// starts is begin for callers that hold p.mu.
func (p *pump) starts(d *Delivery, group string, probe bool) bool {
	if p.inHand[d.Seq] != nil || p.w.pumpCtx.Err() != nil {
		return false
	}
	if g := p.closed[group]; g != nil && !probe {
		g.passedOver(d)
		return false
	}
	delete(p.known, d.Seq)
	p.flies(&flight{p: p, d: *d, probe: probe, probes: group}, d.Seq)
	return true
}

// flies starts a flight. p.mu is held.
func (p *pump) flies(f *flight, in int64) {
	f.since = time.Now()
	if f.opening == nil {
		p.waits(f)
	}
	ctx, cancel := context.WithCancelCause(p.w.hard)
	f.cancel, f.in = cancel, in
	p.inHand[in] = f
	p.w.all.Go(func() {
		defer cancel(nil)
		f.run(ctx)
		f.settles()
		p.passedGates(f)
		if p.lands(f) {
			p.kick()
		}
	})
}

// lands notes that a flight is over. It reports whether the pump must look for due deliveries. That is unnecessary if
// all due deliveries are in hand and the end of this one makes no other due.
func (p *pump) lands(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inHand[f.in] == f {
		delete(p.inHand, f.in)
	}
	if f.ending {
		p.ending--
	}
	return !f.over || f.probe || p.full || len(p.closed) > 0
}

// holds suspends the pump for a duration. Then one attempt is made before any other.
func (p *pump) holds(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.until) {
		p.until = until
	}
	p.probes = true
}

func (p *pump) ends(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.ending = true
	p.ending++
}

// passes notes that the gates let a delivery through. After a successful probe its group opens. After a failed one,
// another probe is sent.
func (f *flight) passes(a *Answer) {
	p := f.p
	p.mu.Lock()
	p.away = false
	lives := a.Outcome.Class == outcome.OK || a.Outcome.Class == outcome.Rejected
	if lives {
		p.good++
	}
	if p.probes {
		p.probes, p.full = false, true // the others were not tried
	}
	p.mu.Unlock()
	switch {
	case !f.probe:
	case lives:
		p.opens(f.probes)
	default:
		p.stays(f.probes)
	}
}

// leave ends the wait of deliveries that have not had their turn.
func (p *pump) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.inHand {
		f.leave()
	}
}

// moved ends the wait of deliveries that wait with a replaced Sender.
func (p *pump) moved() {
	now := p.w.Sender(p.upstream)
	p.mu.Lock()
	for _, f := range p.inHand {
		f.hears(now)
	}
	p.mu.Unlock()
	p.kick()
}
