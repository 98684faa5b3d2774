package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// DefaultOutage is how long a store reserves the part of a process that stopped responding, unless
// Options.Outage sets another time. After a crash, the part of the killed process is unused for that time.
const DefaultOutage = 10 * time.Second

// silenceUsual is the default of Options.Silence.
const silenceUsual = time.Second

// A heartbeat without a response is sent again until one copy is answered. At most mostFlying copies wait at a
// time: as many as are sent in longestBeat, so that a store that recovers is noticed within a third of the
// silence.
const mostFlying = 40

// After restful without use, a group sends its heartbeats restfulTimes as rarely.
const (
	restful      = time.Minute
	restfulTimes = 5
)

// The shortest and longest timeout of a heartbeat.
const (
	shortestBeat = 2500 * time.Millisecond
	longestBeat  = 10 * time.Second
)

// beating is the state of a group's heartbeats in this process; guarded by Group.own.
type beating struct {
	at     time.Duration // of the next heartbeat
	flying int           // copies of heartbeats without a response yet
	alive  int64         // processes with a recent heartbeat; 0 before its first response
	out    Standing      // the fields of the latest response that are the same for all processes

	muchAt time.Duration // of the latest response that reserved much for silent processes
	much   int64         // the part that it reserved, in millionths; 0 if there was none
	cold   cold
	err    error // of the latest exchange; nil if it succeeded

	// Recent demand of calls over all limits of the group, whether granted or not. wish is in seconds of a
	// limit's rate, as of wishAt, so that limits of all sizes can be added.
	wish   float64
	wishAt time.Duration
	need   lately // the part that the cheapest call needs, in millionths, negated
	hold   lately // how long the shortest grants are valid, in nanoseconds, negated
	guard  guard
	window time.Duration // of the longest rolling limit
	usedAt time.Duration // when a call last requested units

	debts []debt // of rolling limits; the store must know them before it gets another heartbeat
	told  uint64 // the ID of the request that reports the first debts; 0 if none was sent yet
	first int    // the number of debts in that request
	busy  bool   // the request is under way
}

// beatAll sends the heartbeats of all groups when they are due.
func (f *Fleet) beatAll(ctx context.Context) {
	for {
		now := f.clock.Now()
		next := now + tick
		for _, g := range f.all() {
			next = min(next, g.beatAt(ctx, now))
		}
		if f.beater.Sleep(ctx, max(time.Millisecond, next-now)) != nil {
			return
		}
	}
}

// beatAt sends a heartbeat if it is due, and returns when the next one is.
func (g *Group) beatAt(ctx context.Context, now time.Duration) time.Duration {
	next, returned := g.beats(ctx, now)
	if returned {
		g.kick(false)
	}
	return next
}

// beats sends a heartbeat for the group if it is due, and returns when the next one is. returned reports that
// the process stops serving calls from its part at this instant, because the store is fast again. While there
// are unreported debts, no heartbeat is sent: otherwise the store could grant the part to other processes
// before it knows its usage.
func (g *Group) beats(ctx context.Context, now time.Duration) (next time.Duration, returned bool) {
	g.own.Lock()
	defer g.own.Unlock()
	b, s := &g.beating, &g.standing
	if now < b.at || s.left {
		return max(b.at, now+time.Millisecond), false
	}
	every := max(time.Millisecond, s.silence/3)
	b.at = now + every*3/4 + g.fleet.within(every/2+1)
	if returned = s.returns(); returned {
		g.owed(now, false)
		g.lone.Store(int64(s.from()))
	}
	switch {
	case len(b.debts) > 0:
		b.busy = b.busy || g.fleet.begin(func() { _ = g.tellDebts(ctx) })
	case b.flying < mostFlying:
		beat := s.beat(now, b.wished(now), -b.need.most(now), b.window)
		if g.fleet.begin(func() { g.exchange(ctx, now, beat) }) {
			b.flying++
		}
	}
	return b.at, returned
}

// exchange sends a copy of a heartbeat and handles the response. The first response to any copy counts. The
// timeout is long, since even a late response shows that there is a store.
func (g *Group) exchange(ctx context.Context, sent time.Duration, beat *Beat) {
	f := g.fleet
	g.own.Lock()
	limit := min(longestBeat, max(shortestBeat, g.standing.silence*5/2, 3*g.standing.rtt))
	g.own.Unlock()
	ctx, cancel := f.clock.WithTimeout(ctx, limit, context.DeadlineExceeded)
	defer cancel()
	b := *beat
	b.Group, b.Client = g.name, f.member
	a, err := f.store.Beat(ctx, &b)
	now := f.clock.Now()
	g.own.Lock()
	g.beating.flying--
	if err != nil {
		g.failed(err)
		g.own.Unlock()
		f.watch(now)
		return
	}
	// Waiting calls check again if the response has changed how calls are served.
	before, _ := g.standing.mode(now)
	cold, failing := !g.warm.Load(), g.failing.Load()
	g.hears(now, sent, beat, &a)
	after, _ := g.standing.mode(now)
	g.own.Unlock()
	f.heard(sent, a.Now)
	f.watch(now)
	if warmed := cold && g.warm.Load(); warmed || before != after || failing && !g.failing.Load() {
		g.kick(warmed)
	}
}

// kick makes all queues check again whether to ask the store. warmed reports that the store now knows the
// previous usage, so that its earlier predictions are void.
func (g *Group) kick(warmed bool) {
	for _, q := range g.waiting() {
		q.mu.Lock()
		// The time of the next request was computed for a failing store. Set it to 0 and not to now: a call may
		// have read the clock a moment before.
		if warmed || q.fails > 0 {
			q.fails, q.next = 0, 0
		}
		if warmed {
			q.there = 0
		}
		q.mu.Unlock()
		q.line.Nudge()
	}
}

// nudge makes the drivers of all queues check again. It does not lock a line.
func (g *Group) nudge() {
	for _, q := range g.waiting() {
		q.line.Nudge()
	}
}

// waiting returns all queues of the group.
func (g *Group) waiting() []*queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Values(g.queues), byLane) // always in the same order, for simulators
}

func byLane(a, b *queue) int { return cmp.Compare(a.lane, b.lane) }

// failed records a failed exchange with the store.
func (g *Group) failed(err error) {
	g.failing.Store(true)
	g.beating.err = err
	g.standing.missed()
}

// hears handles the response to a heartbeat.
func (g *Group) hears(now, sent time.Duration, beat *Beat, a *Standing) {
	s, b := &g.standing, &g.beating
	gen, met := s.gen, s.met
	used, _ := s.mode(now)
	if !s.hears(now, sent, beat, a) {
		return
	}
	// A heartbeat is sent only when all debts are reported, so it followed all previous usage.
	if met && gen == a.Gen && used == asking && len(b.debts) == 0 {
		g.partReported()
	}
	g.failing.Store(false)
	b.cold.hears(a, b.alive)
	b.err, b.out, b.alive = nil, *a, max(1, a.Alive)
	if part := b.reserved(); part >= muchReserved {
		b.muchAt, b.much = now, part
	}
	g.warm.Store(a.Since == 0)
	g.fleet.alive.Store(b.alive)
	s.asks = a.Asks
	s.judge(time.Duration(-b.hold.most(now)), now-sent, time.Duration(a.Least)*time.Microsecond, b.alive)
	if !s.asks { // see reach
		g.judgeBeat(now, now-sent)
	}
	// The group is unused and needs no part soon.
	if now > b.usedAt+restful {
		s.silence = max(s.silence, min(s.silence*restfulTimes, s.rules.life/4))
	}
	g.spread.Store(int64(min(askAtLeast, s.silence/4)))
	b.at = min(b.at, now+s.silence/3) // the store must get the shorter silence before it has passed
	if s.solo == 0 {
		// The process follows the store again and must report its usage of rolling limits. If the generation is
		// new, the store has lost its data.
		g.owed(now, met && gen != a.Gen)
	}
	if met && used != asking && s.solo == 0 {
		g.returned(now)
	}
	if !met || s.solo != 0 && s.solo == now || used.uses() && s.solo == 0 {
		b.at = now // confirm the response
		g.fleet.beater.Wake()
	}
	g.lone.Store(int64(s.from()))
}

// returned records that the store responds to this process again. The others return within one heartbeat
// interval. Until then the store withholds their parts. Calls that wait for more units ask a quarter of the
// silence apart, as they did before. Otherwise, all calls of a large fleet would repeat their requests at a
// high rate.
func (g *Group) returned(now time.Duration) {
	g.crowded.Store(int64(now + g.standing.silence/2))
}

// timeout returns how long to wait for the response to a request. own is held. A store that has not responded
// yet may be far away, or its client may have to connect.
func (g *Group) timeout() time.Duration {
	if g.standing.silentYet() {
		return max(g.fleet.o.Timeout, g.standing.rules.silence)
	}
	return min(longestAsk, max(g.fleet.o.Timeout, 3*g.standing.rtt+50*time.Millisecond))
}

// longestAsk is the longest timeout of a request, and of the last heartbeat.
const longestAsk = 5 * time.Second
