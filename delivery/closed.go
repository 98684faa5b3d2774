package delivery

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir"
)

// A Grouper is a Sender that knows which deliveries the gates treat alike, by their operation and the keys of
// their limits: what is refused to one of a group is refused to all of it, and to nobody else. The deliveries of
// a Sender that is no Grouper are one group.
type Grouper interface {
	Group(d *Delivery) string
}

// A closed is a group of which a gate has refused one. Others of the group are not tried until one has passed.
type closed struct {
	until   time.Time // then one is tried
	probing bool      // one is tried now
	first   Mark      // of those of the group that were passed over
	id      string    // of that one; "" if it has gone, and the next is looked for
}

const (
	shortestHold = 20 * time.Millisecond
	longestHold  = time.Second          // a gate may open before it has said: a pause is resumed, a limit raised
	holdEach     = 5 * time.Millisecond // longestHold is longer where many groups are closed, or looks would be all that is done
	mostClosed   = 10_000               // groups; deliveries of further ones are put off in the queue
	longestDefer = time.Hour            // of those
	lookAgain    = time.Minute          // from the start, while a group is closed
	nextOf       = 16                   // how many are looked at to find the next of a group
)

// refused has the group of a delivery wait as the gate says.
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

// closes notes that a gate refused a delivery of a group; false if too many groups are closed.
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

// stays has another of a group tried, as the probe was let through and failed: its upstream may be down, and be there for none of them.
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

// behind reports whether what was accepted just now waits behind a closed group. A look would read it to pass it over; it is looked at
// when the group opens.
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

// A Marker is a Queue that knows the places of what is due without reading it.
type Marker interface {
	// Marks are those of what Due lists, and perhaps of what has expired.
	Marks(ctx context.Context, upstream string, after Mark, most int) ([]Mark, error)
}

const (
	mostKnown = 10_000 // numbers of deliveries that wait behind closed groups
	fewMarks  = 64     // that are read first: what was not accepted here may stand among them
	mostMarks = 500    // at once
)

// skips has the look go on after those that were accepted since, and are known to wait behind closed groups. It reports whether nothing
// else is due.
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
		if err != nil || !p.skip(after, marks) { // the look tells of the error
			break
		}
		if len(marks) < most {
			return true
		}
	}
	return false
}

// skip goes from a mark over others; false if something stands there that is not known, or the look has gone back meanwhile.
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

// opens has a group tried again, all of it.
func (p *pump) opens(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.closed[group]; g != nil {
		delete(p.closed, group)
		if len(p.known) == mostKnown { // or of what others have sent it might never be rid
			clear(p.known)
		}
		p.opensAgain(group, p.after)
		p.back(g.first)
	}
}

// back has the next look begin no later than at a mark. p.mu is held.
func (p *pump) back(to Mark) {
	if to.Before(p.after) {
		p.after = to.less()
	}
	if len(p.closed) == 0 {
		p.after = Mark{}
	}
}

// returns notes how a flight ended that was not sent, or that was to find out whether its group is let through. The look goes back to one
// that was not sent, but not where its group waits: that is looked at when it has been opened.
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

// groupOf is the group of a delivery, if any is closed.
func (p *pump) groupOf(d *Delivery) (group string) {
	p.mu.Lock()
	any := len(p.closed) > 0
	p.mu.Unlock()
	if g, ok := p.w.Sender(p.upstream).(Grouper); ok && any {
		group = g.Group(d)
	}
	return group
}

// try sends one of each closed group whose time has come, at most a number of them, and says how many.
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
		p.opens(group) // there may be others further on
	}
	return begun
}

// firstOf is the delivery that finds out whether a group is let through: the one of an ID or, where that is over or under way, the
// next of the group that was passed over.
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

// isFirst notes that a delivery is the first of its group; false if it is in hand.
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

// soonest is when a closed group is tried next, at most a time from now. p.mu is held.
func (p *pump) soonest(most time.Duration) time.Duration {
	for _, g := range p.closed {
		if !g.probing {
			most = min(most, max(time.Millisecond, time.Until(g.until)))
		}
	}
	return most
}
