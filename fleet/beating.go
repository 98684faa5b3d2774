package fleet

import (
	"context"
	"github.com/seed1158cd35/weir/limit"
	"maps"
	"math"
	"slices"
	"time"
)

// DefaultOutage is how long a store keeps a part for a process that is silent, unless
// Options.Outage says otherwise.
const DefaultOutage = 5 * time.Minute

// silenceUsual is Options.Silence that is 0.
const silenceUsual = time.Second

// A beat whose answer does not come is sent again, as a copy, until one is answered. Of a store that stands still
// so many copies wait at most; beyond manyFlying they are sent againBeat apart.
const (
	mostFlying = 16
	manyFlying = 4
	againBeat  = 700 * time.Millisecond
)

// A group that nobody has used for the time of restful beats restfulTimes as rarely.
const (
	restful      = time.Minute
	restfulTimes = 5
)

// wishMemory is the time constant with which what was wanted is forgotten.
const wishMemory = 10 * time.Second

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
	need   lately        // the part that the dearest call needs, in millionths
	hold   lately        // for how long the shortest grants hold, in nanoseconds, negative
	window time.Duration // of the longest rolling limit
	usedAt time.Duration // when a call wanted anything last

	debts []debt // of rolling limits, which the store must know before it hears another beat
	told  uint64 // the ask by which the first of them are told; 0 if none was sent yet
	first int    // how many
	busy  bool   // they are being told
}

// A debt is what was spent of a lease without the store.
type debt struct {
	lease *lease
	units int64
}

// settlement tells of a debt by the rule that is in force when it is sent.
func (d *debt) settlement(now time.Duration) Settlement {
	s := d.lease.spec()
	return Settlement{Rule: &s.rule, Key: d.lease.key, Windows: s.windows(d.lease.group.fleet.storeTime(now)), Owe: d.units}
}

// lately is the largest value of the last minute or two.
type lately struct {
	since     time.Duration
	now, last int64 // none if there was none
}

// none is no value: less than all that is noted.
const none = math.MinInt64

// newLately has seen nothing yet.
func newLately() lately { return lately{now: none, last: none} }

// note notes a value of the instant.
func (l *lately) note(at time.Duration, n int64) {
	l.turn(at)
	l.now = max(l.now, n)
}

// turn begins another minute if it is time to: what is older than two is forgotten.
func (l *lately) turn(at time.Duration) {
	switch past := at - l.since; {
	case past >= 2*restful:
		l.since, l.last, l.now = at, none, none
	case past >= restful:
		l.since, l.last, l.now = at, l.now, none
	}
}

// most is 0 if there was none.
func (l *lately) most(at time.Duration) int64 {
	if l.turn(at); max(l.now, l.last) == none {
		return 0
	}
	return max(l.now, l.last)
}

// wants notes that this process wanted units of a limit, or, below 0, that it did not after all.
func (g *Group) wants(now time.Duration, s *spec, n int64) {
	b := &g.beating
	b.wish = max(0, b.wishes(now)+float64(n)/max(1e-9, s.perSecond(g.fleet.storeTime(now))))
	b.wishAt, b.usedAt = now, now
}

// wishes is the wish as of the instant: what is older counts less, by half each 7 s.
func (b *beating) wishes(now time.Duration) float64 {
	return b.wish * math.Exp(-(now-b.wishAt).Seconds()/wishMemory.Seconds())
}

// wished is the wish as a beat says it.
func (b *beating) wished(now time.Duration) int64 {
	return int64(min(b.wishes(now)*1e4, mostWish))
}

// needs notes the part of a limit that a call needs, and for how long grants hold.
func (g *Group) needs(now time.Duration, s *spec, cost int64) {
	b := &g.beating
	switch s.rule.Shape {
	case limit.Bucket:
		b.need.note(now, partOf(timesMost(cost, s.rule.Meter.Unit), s.rule.Meter.Cap))
	case limit.Rolling:
		b.need.note(now, partOf(cost, s.rule.Amount))
		_, stay := s.stay()
		b.window = max(b.window, stay+s.hold)
	}
	if s.late {
		b.hold.note(now, -int64(s.hold))
	}
}

// partOf is which part n is of all, rounded up and a little more, as what is a part of it is
// rounded down.
func partOf(n, all int64) int64 { return min(Whole, scaleUp(n, Whole, max(1, all))+1) }

// spawn lets do go on beside.
func (f *Fleet) spawn(do func()) {
	if !f.begin(do) {
		go do() // somebody who still calls waits for it
	}
}

// begin lets do go on beside, for Close to wait for. After Close has begun it does not.
func (f *Fleet) begin(do func()) bool {
	if c, ok := f.clock.(interface{ Go(func()) }); ok { // sim.Clock: a simulator knows only its own goroutines
		c.Go(do)
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.wg.Go(do)
	}
	return !f.closed
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
		g.kick(now)
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
	if b.flying > manyFlying {
		every = max(every, againBeat)
	}
	b.at = now + every*3/4 + g.fleet.within(every/2+1)
	if returned = s.returns(); returned {
		g.owed(now, false)
		g.lone.Store(int64(s.from()))
	}
	switch {
	case len(b.debts) > 0:
		b.busy = b.busy || g.fleet.begin(func() { _ = g.tellDebts(ctx) })
	case b.flying < mostFlying:
		beat := s.beat(now, b.wished(now), b.need.most(now), b.window)
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
	g.hears(now, sent, beat, &a)
	after, _ := g.standing.mode(now)
	g.own.Unlock()
	f.heard(sent, a.Now)
	f.watch(now)
	if before != after {
		g.kick(now)
	}
}

// kick lets all queues look again whether the store is to be asked.
func (g *Group) kick(now time.Duration) {
	for _, q := range g.waiting() {
		q.mu.Lock()
		// How calls are served has changed: the time until the next try was that of a store which fails.
		if q.fails > 0 {
			q.fails, q.next = 0, now
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
	g.failing.Store(false)
	b.err, b.out, b.alive = nil, *a, max(1, a.Alive)
	b.cold.hears(a)
	g.warm.Store(a.Since == 0)
	g.fleet.alive.Store(b.alive)
	s.judge(time.Duration(-b.hold.most(now)), now-sent, b.alive)
	// Nobody uses the group: it needs no part soon.
	if now > b.usedAt+restful {
		s.silence = min(s.silence*restfulTimes, s.rules.life/4)
	}
	b.at = min(b.at, now+s.silence/3) // a shorter silence must not have passed when the store hears of it
	if s.solo == 0 {
		// The process goes by the store again: what it spent of rolling limits is owed. A generation that it does not know is a store
		// that has lost its memory.
		g.owed(now, met && gen != a.Gen)
	}
	if !met || s.solo != 0 && s.solo == now || used.uses() && s.solo == 0 {
		b.at = now // it says that it has heard
		g.fleet.beater.Wake()
	}
	g.lone.Store(int64(s.from()))
}

// owed collects what was spent of rolling limits without the store. If that has lost its
// memory it is told of all that still counts.
func (g *Group) owed(now time.Duration, lost bool) {
	for p := range g.spenders {
		o := &p.own
		p.turnOwn(now, p.spec(), g.standing.use(now))
		o.spent.drop(now)
		if lost {
			o.debt = o.spent.sum
		}
		if o.debt > 0 {
			g.beating.debts = append(g.beating.debts, debt{p, o.debt})
			o.debt = 0
		}
		if o.spent.sum == 0 {
			delete(g.spenders, p)
		}
	}
}

// debtsAtOnce is how many debts one ask tells of, so that a store's script does not run for long.
const debtsAtOnce = 500

// tellDebts tells the store what is owed, once however often it takes. Until it is told no
// further beat is sent.
func (g *Group) tellDebts(ctx context.Context) error {
	f := g.fleet
	now := f.clock.Now()
	g.own.Lock()
	b := &g.beating
	// The ask has the ID of the first try until it is answered, so that debts are charged once; what comes up meanwhile waits.
	if b.told == 0 {
		b.told, b.first = f.nextID(), min(len(b.debts), debtsAtOnce)
	}
	a := Ask{Group: g.name, ID: b.told, Lane: g.debtLane, Again: true}
	for i := range b.debts[:b.first] {
		a.Settle = append(a.Settle, b.debts[i].settlement(now))
	}
	ctx, cancel := f.clock.WithTimeout(ctx, g.timeout(), context.DeadlineExceeded)
	g.own.Unlock()
	defer cancel()
	err := f.store.Take(ctx, &a)
	now = f.clock.Now()
	g.own.Lock()
	defer g.own.Unlock()
	b.busy = false
	if err != nil {
		g.failed(err)
		return err
	}
	b.debts, b.told = b.debts[b.first:], 0
	b.at = now
	f.beater.Wake()
	return nil
}

// timeout is how long an answer to an ask is waited for; own is held.
func (g *Group) timeout() time.Duration {
	return min(longestAsk, max(g.fleet.o.Timeout, 3*g.standing.rtt+50*time.Millisecond))
}

// longestAsk is how long the answer to an ask, or to the last beat, is waited for at most.
const longestAsk = 5 * time.Second

// leave gives the part back, waiting at most as long as ctx. What was spent of it is told
// first.
func (g *Group) leave(ctx context.Context) error {
	now := g.fleet.clock.Now()
	g.own.Lock()
	g.standing.left = true
	g.lone.Store(int64(g.standing.from()))
	g.owed(now, false)
	met := g.standing.met || g.standing.pending != nil
	g.standing.seq++
	b := Beat{Group: g.name, Client: g.fleet.member, Seq: g.standing.seq, Silence: 1, Life: 1, Leave: true}
	g.own.Unlock()
	if !met {
		return nil
	}
	// The part must not be others' before what was spent of it is known.
	for g.owes() {
		if err := g.tellDebts(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := g.fleet.clock.WithTimeout(ctx, longestAsk, context.DeadlineExceeded)
	defer cancel()
	_, err := g.fleet.store.Beat(ctx, &b)
	return err
}

// owes reports whether there are debts that the store has not been told.
func (g *Group) owes() bool {
	g.own.Lock()
	defer g.own.Unlock()
	return len(g.beating.debts) > 0
}
