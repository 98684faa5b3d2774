package fleet

import (
	"context"
	"maps"
	"slices"
	"time"
)

// DefaultOutage is how long a store reserves the part of a process that stopped responding, unless Options.Outage
// sets another time. A killed process takes its part of the limit along for so long.
const DefaultOutage = 10 * time.Second

// silenceUsual is Options.Silence that is 0.
const silenceUsual = time.Second

// A beat whose answer does not come is sent again, as a copy, until one is answered. mostFlying copies wait at most: as many as
// are sent in longestBeat, so that a store that answers again is heard within a third of the silence.
const mostFlying = 40

// A group that nobody has used for the time of restful beats restfulTimes as rarely.
const (
	restful      = time.Minute
	restfulTimes = 5
)

// The answer to a copy of a beat is waited for at least and at most so long.
const (
	shortestBeat = 2500 * time.Millisecond
	longestBeat  = 10 * time.Second
)

// beating is how a group of this process beats; guarded by Group.own.
type beating struct {
	at     time.Duration // of the next beat
	flying int           // copies of beats whose answers are waited for
	alive  int64         // processes that the store has heard of late; 0 before its first answer
	out    Standing      // what the store said to all, with the latest answer
	cold   cold
	err    error // of the latest exchange; nil if it was answered

	// What calls wanted of late, of all limits of the group, whether they got it or not. wish is in seconds of a limit's
	// rate, as of wishAt, so that limits of all sizes add up.
	wish   float64
	wishAt time.Duration
	need   lately // the part that the cheapest call needs, in millionths, below 0
	hold   lately // for how long the shortest grants hold, in nanoseconds, negative
	guard  guard
	window time.Duration // of the longest rolling limit
	usedAt time.Duration // when a call wanted anything last

	debts []debt // of rolling limits, which the store must know before it hears another beat
	told  uint64 // the ask by which the first of them are told; 0 if none was sent yet
	first int    // how many
	busy  bool   // they are being told
}

// beatAll beats for all groups, each in its time.
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

// beatAt beats if it is time to, and returns when it will be next.
func (g *Group) beatAt(ctx context.Context, now time.Duration) time.Duration {
	next, returned := g.beats(ctx, now)
	if returned {
		g.kick(false)
	}
	return next
}

// beats beats for the group if it is time to, and says when it will be next. returned is that with this
// instant the process stops serving by itself, as the store answers quickly again. While debts are not told
// there is no beat: the store would grant the part to others before it knows what was spent of it.
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

// exchange sends a copy of a beat, and hears the answer: the first of all copies counts. Its own time is long, as an
// answer that comes late tells at least that there is a store.
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
	// Those who wait look again if the answer has changed how calls are served.
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

// kick lets all queues look again whether the store is to be asked; one that knows from now on what was used has said nothing that
// still holds of when there will be something.
func (g *Group) kick(warmed bool) {
	for _, q := range g.waiting() {
		q.mu.Lock()
		// How calls are served has changed: the time until the next try was that of a store which fails. The past is 0, and not
		// the present: a call may have looked at the clock a moment before.
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

// nudge has the drivers of all queues look again. It takes no lock of a line.
func (g *Group) nudge() {
	for _, q := range g.waiting() {
		q.line.Nudge()
	}
}

// waiting are the queues.
func (g *Group) waiting() []*queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.queues))
}

// failed notes that an exchange with the store failed.
func (g *Group) failed(err error) {
	g.failing.Store(true)
	g.beating.err = err
	g.standing.missed()
}

// hears takes the answer to a beat.
func (g *Group) hears(now, sent time.Duration, beat *Beat, a *Standing) {
	s, b := &g.standing, &g.beating
	gen, met := s.gen, s.met
	used, _ := s.mode(now)
	if !s.hears(now, sent, beat, a) {
		return
	}
	// A beat is sent only when all debts have been told, so this one followed whatever was used before.
	if met && gen == a.Gen && used == asking && len(b.debts) == 0 {
		g.partReported()
	}
	g.failing.Store(false)
	b.cold.hears(a, b.alive)
	b.err, b.out, b.alive = nil, *a, max(1, a.Alive)
	g.warm.Store(a.Since == 0)
	g.fleet.alive.Store(b.alive)
	s.asks = a.Asks
	s.judge(time.Duration(-b.hold.most(now)), now-sent, time.Duration(a.Least)*time.Microsecond, b.alive)
	if !s.asks { // see reach
		g.judgeBeat(now, now-sent)
	}
	// Nobody uses the group: it needs no part soon.
	if now > b.usedAt+restful {
		s.silence = max(s.silence, min(s.silence*restfulTimes, s.rules.life/4))
	}
	g.spread.Store(int64(min(askAtLeast, s.silence/4)))
	b.at = min(b.at, now+s.silence/3) // a shorter silence must not have passed when the store hears of it
	if s.solo == 0 {
		// The process goes by the store again: what it spent of rolling limits is owed. A generation that it does not know is a store
		// that has lost its memory.
		g.owed(now, met && gen != a.Gen)
	}
	if met && used != asking && s.solo == 0 {
		g.returned(now)
	}
	if !met || s.solo != 0 && s.solo == now || used.uses() && s.solo == 0 {
		b.at = now // it says that it has heard
		g.fleet.beater.Wake()
	}
	g.lone.Store(int64(s.from()))
}

// returned notes that the store answers this process again. The others return within one interval of
// heartbeats, and until then the store grants only what is not out. Calls that wait for more ask for it a quarter of the
// silence apart, as they do before this process returns: in a large fleet all of them would ask again and again.
func (g *Group) returned(now time.Duration) {
	g.crowded.Store(int64(now + g.standing.silence/2))
}

// timeout is how long an answer to an ask is waited for; own is held. A store that has not answered yet may be far, or have
// its first connection to make.
func (g *Group) timeout() time.Duration {
	if g.standing.silentYet() {
		return max(g.fleet.o.Timeout, g.standing.rules.silence)
	}
	return min(longestAsk, max(g.fleet.o.Timeout, 3*g.standing.rtt+50*time.Millisecond))
}

// longestAsk is how long the answer to an ask, or to the last beat, is waited for at most.
const longestAsk = 5 * time.Second
