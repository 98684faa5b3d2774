package delivery

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir"
)

// A Grouper is a Sender that can tell which deliveries the gates treat alike, by their operation and the keys of their
// limits. A refusal of one delivery of a group applies to the whole group and to no other. Without a Grouper, all
// deliveries of a Sender are one group.
type Grouper interface {
	Group(d *Delivery) string
}

// A closed is a group of which a gate has refused a delivery. The rest of the group is not tried until a probe has
// passed.
type closed struct {
	until   time.Time // when the next probe is sent
	probing bool      // a probe is being sent
	first   Mark      // of the first delivery of the group that was skipped
	id      string    // ID of that delivery; empty if it is gone and the next must be found
}

const (
	shortestHold = 20 * time.Millisecond
	longestHold  = time.Second          // a gate may open early, when a pause is resumed or a limit raised
	holdEach     = 5 * time.Millisecond // longestHold grows with the number of closed groups, to bound the cost of probes
	mostClosed   = 10_000               // groups; deliveries of further groups are deferred in the queue
	longestDefer = time.Hour            // the longest such deferral
	lookAgain    = time.Minute          // how often the scan restarts while a group is closed
	nextOf       = 16                   // deliveries read to find the next one of a group
)

// refused makes the group of a delivery wait as the gate requires.
func (f *flight) refused(ctx context.Context, r *weir.Refusal) {
	wait, group, knows := max(shortestHold, r.RetryAfter), "", false
	if r.Reason == weir.CircuitOpen {
		f.p.isAway()
	}
	if g, ok := f.p.w.Sender(f.p.upstream).(Grouper); ok {
		group, knows = g.Group(&f.d), true
	}
	if (knows || r.Key == "" && r.Pool == "") && f.p.closes(group, &f.d, wait) {
		f.held = true
		return
	}
	if err := f.p.w.Queue.Defer(ctx, time.Now().Add(min(wait, longestDefer)), f.d.Seq); err != nil {
		f.p.w.failed(ctx, "put off", f.p.upstream, err)
		f.p.holds(time.Second)
	}
}

// closes notes that a gate refused a delivery of a group. It returns false if too many groups are closed.
func (p *pump) closes(group string, d *Delivery, wait time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.closed[group]
	if g == nil {
		if len(p.closed) >= mostClosed {
			return false
		}
		if len(p.closed) == 0 && len(p.reopened) == 0 {
			p.started = time.Now()
		}
		g = &closed{first: d.Mark(), id: d.ID}
		p.closed[group] = g
		p.after = p.closesAgain(group, p.after)
	}
	g.passedOver(d)
	g.probing = false
	g.until = time.Now().Add(min(wait, max(longestHold, time.Duration(len(p.closed))*holdEach)))
	return true
}

// stays makes another delivery of a group probe soon, because the last probe was let through and failed. The upstream
// may still be down for all of them.
func (p *pump) stays(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.closed[group]; g != nil {
		g.probing, g.until, g.id = false, time.Now(), ""
	}
}

func (g *closed) passedOver(d *Delivery) {
	if m := d.Mark(); m.Before(g.first) {
		g.first, g.id = m, d.ID
	}
}

// behind reports whether a delivery that was just accepted waits behind a closed group. A scan would only read and skip
// it. It is read when the group opens.
func (p *pump) behind(d *Delivery) bool {
	if d.Status != Queued || !d.NotBefore.IsZero() {
		return false
	}
	group := p.groupOf(d)
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.closed[group]
	if g != nil {
		g.passedOver(d)
		if len(p.known) < mostKnown {
			p.known[d.Seq] = group
		}
	}
	return g != nil
}

// A Marker is a Queue that can list the marks of due deliveries without reading them.
type Marker interface {
	// Marks returns the marks of the deliveries that Due lists. It may include expired ones.
	Marks(ctx context.Context, upstream string, after Mark, most int) ([]Mark, error)
}

const (
	mostKnown = 10_000 // deliveries known to wait behind closed groups
	fewMarks  = 64     // marks read first: deliveries accepted elsewhere may be among them
	mostMarks = 500    // marks read at a time
)

// skips advances the scan over recent deliveries that are known to wait behind closed groups. It returns true if no
// other delivery is due.
func (p *pump) skips(ctx context.Context) bool {
	q, ok := p.w.Queue.(Marker)
	for most := fewMarks; ok; most = min(2*most, mostMarks) {
		p.mu.Lock()
		after, any := p.after, len(p.known) > 0
		p.mu.Unlock()
		if !any {
			break
		}
		marks, err := q.Marks(ctx, p.upstream, after, most)
		if err != nil || !p.skip(after, marks) { // the scan reports the error
			break
		}
		if len(marks) < most {
			return true
		}
	}
	return false
}

// skip advances the scan over marks. It returns false if a mark is unknown, or if the scan was moved back meanwhile.
func (p *pump) skip(from Mark, marks []Mark) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after != from {
		return false
	}
	for _, m := range marks {
		if group, ok := p.known[m.Seq]; !ok || p.closed[group] == nil {
			return false
		}
		delete(p.known, m.Seq)
		p.after = m
	}
	return true
}

// opens has a whole group tried again.
func (p *pump) opens(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.closed[group]; g != nil {
		delete(p.closed, group)
		if len(p.known) == mostKnown { // otherwise entries of deliveries that other workers sent could stay forever
			clear(p.known)
		}
		p.opensAgain(group, p.after)
		p.back(g.first)
	}
}

// back moves the scan back to a mark if it is past it. p.mu is held.
func (p *pump) back(to Mark) {
	if to.Before(p.after) {
		p.after = to.less()
	}
	if len(p.closed) == 0 {
		p.after = Mark{}
	}
}

// returns notes the end of a flight that was a probe or was not sent. The scan goes back to a delivery that was not
// sent, unless its group is closed: then it is read when the group opens.
func (p *pump) returns(f *flight) {
	p.mu.Lock()
	g, probed := p.closed[f.probes], f.probe
	stillProbes := probed && g != nil && g.probing
	if !f.launched && !f.held && f.d.Seq != 0 {
		p.seen = seen{}
		p.back(f.d.Mark())
	}
	p.mu.Unlock()
	if stillProbes {
		p.opens(f.probes)
	}
}

// groupOf returns the group of a delivery if any group is closed.
func (p *pump) groupOf(d *Delivery) (group string) {
	p.mu.Lock()
	any := len(p.closed) > 0
	p.mu.Unlock()
	if g, ok := p.w.Sender(p.upstream).(Grouper); ok && any {
		group = g.Group(d)
	}
	return group
}

// try sends a probe for each closed group that is due for one, up to most probes, and returns how many.
func (p *pump) try(ctx context.Context, most int) (begun int) {
	ids := make(map[string]string)
	p.mu.Lock()
	now := time.Now()
	for group, g := range p.closed {
		if !g.probing && !g.until.After(now) && len(ids) < most {
			g.probing, ids[group] = true, g.id
		}
	}
	if len(p.closed) > 0 && now.Sub(p.started) >= lookAgain {
		p.started, p.after, p.seen = now, Mark{}, seen{}
		clear(p.known)
	}
	p.mu.Unlock()
	for group, id := range ids {
		d, err := p.firstOf(ctx, group, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			p.w.failed(ctx, "find due deliveries", p.upstream, err)
		}
		if err == nil && p.begin(&d, group, true) {
			begun++
			continue
		}
		p.opens(group) // there may be more deliveries later in the queue
	}
	return begun
}

// firstOf returns the probe of a group: the delivery with the given ID or, if that has ended or is being sent, the next
// one of the group that was skipped.
func (p *pump) firstOf(ctx context.Context, group, id string) (d Delivery, err error) {
	if id != "" {
		if d, err = p.w.Queue.Get(ctx, id); err == nil && d.MayGo(time.Now()) {
			return d, nil
		}
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return d, err
	}
	p.mu.Lock()
	var from Mark
	if g := p.closed[group]; g != nil {
		from = g.first.less()
	}
	p.mu.Unlock()
	all, err := p.w.Queue.Due(ctx, p.upstream, from, nextOf)
	for i := range all {
		if p.groupOf(&all[i]) == group && p.isFirst(&all[i], group) {
			return all[i], nil
		}
	}
	return d, cmp.Or(err, ErrNotFound)
}

// isFirst notes that a delivery is the first of its group. It returns false if the delivery is being sent.
func (p *pump) isFirst(d *Delivery, group string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.closed[group]
	if g == nil || p.inHand[d.Seq] != nil {
		return false
	}
	g.first, g.id = d.Mark(), d.ID
	return true
}

// soonest returns the time until the next probe of a closed group, or most if that is shorter. p.mu is held.
func (p *pump) soonest(most time.Duration) time.Duration {
	for _, g := range p.closed {
		if !g.probing {
			most = min(most, max(time.Millisecond, time.Until(g.until)))
		}
	}
	return most
}
