package delivery

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A pump sends what is due for one upstream.
type pump struct {
	w        *Worker
	upstream string
	kicked   chan struct{}

	mu      sync.Mutex
	inHand  map[int64]*flight // by Seq: those that wait for their turn, or are sent
	opened  int64             // how many were sent for before they were stored
	waiting list.List         // of flights that wait for their gates, with others behind them; the first of them first
	ending  int               // whose attempt is over, and has yet to be recorded
	until   time.Time         // nothing is tried before: the queue failed, or the upstream is gone
	probes  bool              // that was so: one is tried before others
	away    bool              // its breaker let nothing through, and nothing has gone since
	good    int               // answers since it began, or since its breaker let nothing through
	full    bool              // there may be more to do than is in hand

	closed  map[string]*closed // groups of which a gate refused one
	known   map[int64]string   // by Seq: what was accepted since, and waits behind such a group
	after   Mark               // where the look goes on; zero unless a group is closed
	started time.Time          // the look over all
	seen                       // of that look, what need not be read again
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

// round sends what is due, as far as there is room, and says for how long nothing is to be done
// unless the pump is kicked.
func (p *pump) round(ctx context.Context) time.Duration {
	room, taken, wait := p.room()
	if room == 0 {
		return wait
	}
	room -= p.try(ctx, room)
	var last Mark // of what was looked at
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
			if room == 0 { // those in hand were over before the look, and what has come to their place is due
				p.isFull()
				break
			}
			if p.begin(&due[i], p.groupOf(&due[i]), false) {
				room--
			}
			at, moved = p.passed(at, &due[i])
		}
		more = moved && len(due) == most && !p.skips(ctx)
		if more && room == was { // all were passed over, however many there are: a core has time for others
			p.w.rest(ctx, time.Since(began))
		}
	}
	return p.next(ctx, last)
}

// isFull notes that there is more to do than is in hand.
func (p *pump) isFull() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = true
}

// takes sends what was accepted just now without a look at what is due, if there is room and nothing that came before waits for this pump.
func (p *pump) takes(d Delivery) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.free(0) || d.Status != Queued || !d.NotBefore.IsZero() {
		return false
	}
	d.Header = d.Header.Clone() // the caller may change it
	return p.starts(&d, "", false)
}

// free reports whether what has come just now may be sent at once: no group is closed then. Where there is more to do than is in hand
// there may be so many attempts, with which the pump looks for that, too. p.mu is held.
func (p *pump) free(beside int) bool {
	most := p.most()
	if p.full {
		most = min(most, beside)
	}
	return p.attempts() < most && !p.probes && len(p.closed) == 0 && time.Until(p.until) <= 0 && p.w.pumpCtx.Err() == nil
}

// attempts is how many are at the upstream, or will be: what is over and has yet to be recorded is no burden to it. When too much of that
// has gathered, it counts. p.mu is held.
func (p *pump) attempts() int {
	if p.ending >= 3*p.w.Parallel {
		return len(p.inHand)
	}
	return len(p.inHand) - p.ending
}

// gently is how many attempts an upstream gets at once that has not answered yet: it may be down, and each of them would burn an attempt.
const gently = 8

// most is how many attempts there may be at once: one more with each answer. p.mu is held.
func (p *pump) most() int { return min(p.w.Parallel, gently+p.good) }

// page is how many a look reads, of which so many may begin: no fewer than usual where some are passed over.
func (p *pump) page(most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.closed) > 0 {
		most = max(most, p.w.Parallel)
	}
	return most
}

// room is how many may begin. While there is more to do than there is room for, a half is filled
// at once, as each look reads what is in hand again.
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
		p.full = true // whoever kicked the pump has something for it
		return 0, taken, p.w.Poll
	}
	return most - taken, taken, 0
}

// next is how long nothing is due beyond what was looked at, up to a mark: that is in hand, or kicks the pump when there is room for it.
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
	if p.mu.Lock(); d <= 0 && len(p.inHand) > 0 { // it has come since, or another weir has it
		d = shortestHold
	}
	d = p.soonest(d)
	p.mu.Unlock()
	return min(max(d, time.Millisecond), p.w.Poll)
}

// from is where a look goes on.
func (p *pump) from() Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.after
}

// passed has the look that has come to a mark go on after a delivery, if a group is closed: unless it has been sent elsewhere meanwhile.
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

// begin sends a delivery, unless that is under way or its group is closed. A probe is sent to find out whether
// the group is let through again.
func (p *pump) begin(d *Delivery, group string, probe bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts(d, group, probe)
}

// starts is begin where the lock is held.
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

// flies has a flight run. p.mu is held.
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

// lands notes that a flight is over, and reports whether the pump has to look for what is due: not where everything that
// was is in hand, and the end of this one makes nothing else due.
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

// holds has nothing tried for a time, and then one before others.
func (p *pump) holds(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.until) {
		p.until = until
	}
	p.probes = true
}

// ends notes that the attempt of a flight is over.
func (p *pump) ends(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.ending = true
	p.ending++
}

// passes notes that the gates let a delivery through. Its group goes on, unless it failed: then one more is tried.
func (f *flight) passes(a *Answer) {
	p := f.p
	p.mu.Lock()
	p.away = false
	lives := a.Outcome.Class == outcome.OK || a.Outcome.Class == outcome.Rejected
	if lives {
		p.good++
	}
	if p.probes {
		p.probes, p.full = false, true // others were not tried
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

// leave ends the wait of those that have not had their turn.
func (p *pump) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.inHand {
		f.leave()
	}
}

// moved ends the wait of those that wait with another Sender than there is now.
func (p *pump) moved() {
	now := p.w.Sender(p.upstream)
	p.mu.Lock()
	for _, f := range p.inHand {
		f.hears(now)
	}
	p.mu.Unlock()
	p.kick()
}
