package breakers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// A probe that begins at the last moment is over before another process may treat it as lost. This holds for any
// clocks, and for any latency of the store's time.
func TestALentProbeIsOverBeforeOthersTakeItsPlace(t *testing.T) {
	for seed := range uint64(1000) {
		w := newWorld(t, seed, breaker.Config{}, 2)
		w.slow = time.Duration(1 + w.r.Int64N(int64(500*time.Millisecond)))
		a, b := w.all[0], w.all[1]
		a.s.Sync(t.Context())
		b.s.Sync(t.Context())
		begin := time.Duration(w.epoch.UnixNano()) // the world's beginning on the store's clock
		deadline := w.now + grace + w.cfg.ProbeTimeout
		e := entry{Phase: breaker.HalfOpen, Holder: a.s.id, At: begin + w.now, Until: begin + deadline}
		ends := a.s.state(a.now(), a.s.seats[""], &e).Lease + w.cfg.ProbeTimeout - a.off
		lost := b.s.over(b.now(), &e) - b.off
		if ends > deadline || lost < deadline {
			w.fatal("a probe ends %v after its deadline, and is thought lost %v after", ends-deadline, lost-deadline)
		}
		if slack := 2*w.slow + time.Millisecond; ends < deadline-slack || lost > deadline+slack {
			w.fatal("a probe ends %v before its deadline, and is thought lost %v after", deadline-ends, lost-deadline)
		}
	}
}

// open returns a fleet of n processes with an open breaker, just before the open time ends. No calls come.
func open(t *testing.T, seed uint64, c breaker.Config, n int) *world {
	t.Helper()
	c.Failures, c.Open = 3, 5*time.Second
	w := newWorld(t, seed, c, n)
	w.pass(2*time.Second, nil)
	w.trip(w.all[0])
	w.wait(breaker.Open, 2*time.Second, nil)
	w.pass(5*time.Second, nil)
	return w
}

// trip makes a process see as many failures as open the breaker.
func (w *world) trip(p *process) {
	for range w.cfg.Failures {
		p.call(outcome.Failed)
	}
}

func (w *world) entry() entry {
	w.t.Helper()
	r, _, err := w.store.Load(w.t.Context(), "up", []string{"breaker"})
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := decode(r[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Keys[""]
}

// A process with calls probes before processes without calls.
func TestWhoHasCallsProbesBeforeWhoHadOne(t *testing.T) {
	for seed := range uint64(30) {
		w := open(t, seed, breaker.Config{Successes: 1}, 20)
		w.calls() // each process has a call, and one process continues
		w.pass(3*time.Second, nil)
		took := w.wait(breaker.Closed, 30*time.Second, func() { w.all[0].call(outcome.OK) })
		if most := grace + spread + 4*time.Second; took > most {
			w.fatal("closed after %v, want %v", took, most)
		}
	}
}

func TestWhoHasNoCallGivesTheProbeBack(t *testing.T) {
	for seed := range uint64(30) {
		w := open(t, seed, breaker.Config{Successes: 1}, 2)
		a, b := w.all[0], w.all[1]
		a.call(outcome.OK)
		w.pass(time.Second, nil)
		if a.b.State().Lease < a.now() {
			w.fatal("a was not lent the probe: %+v", a.b.State())
		}
		if took := w.wait(breaker.Closed, 10*time.Second, func() { b.call(outcome.OK) }); took > 2*grace+2*time.Second {
			w.fatal("b, which has calls, probed after %v", took)
		}
	}
}

// A process that is called once a minute, alone in its fleet, can eventually probe.
func TestAProcessThatIsCalledSeldomProbesInTheEnd(t *testing.T) {
	w := open(t, 3, breaker.Config{Successes: 1}, 1)
	for minutes := 0; w.phases()[breaker.Closed] == 0; minutes++ {
		if minutes == 15 {
			t.Fatal("still open after 15 calls, one a minute")
		}
		w.all[0].call(outcome.OK)
		w.pass(time.Minute, nil)
	}
}

func TestWhoIsNotCalledStopsAsking(t *testing.T) {
	w := open(t, 4, breaker.Config{}, 5)
	w.calls()
	w.pass(wantFor+time.Minute, nil)
	before := w.entry()
	w.pass(10*time.Minute, nil)
	if after := w.entry(); after != before {
		t.Errorf("a fleet that nobody calls goes on from %+v to %+v", before, after)
	}
}

// Successful probes of all processes count for the fleet.
func TestGoodProbesOfSeveralProcessesAddUp(t *testing.T) {
	w := open(t, 5, breaker.Config{Successes: 2}, 2)
	probes := 0
	for _, p := range w.all {
		for probed := false; !probed; w.step() {
			permit, _, ok := p.b.Admit(p.now())
			if probed = ok; ok {
				probes++
				p.b.Report(p.now(), permit, outcome.Outcome{Class: outcome.OK})
			}
		}
	}
	w.wait(breaker.Closed, 2*time.Second, nil)
	if probes != 2 {
		t.Errorf("%d probes closed it, want 2", probes)
	}
}

// If the clock of the store is set back, no process waits longer than the open time.
func TestAStoreSetBackShutsNobodyOut(t *testing.T) {
	w := newWorld(t, 6, breaker.Config{Failures: 3, Open: 20 * time.Second, Successes: 1}, 3)
	w.pass(2*time.Second, nil)
	w.trip(w.all[0])
	w.wait(breaker.Open, 2*time.Second, nil)
	w.epoch = w.epoch.Add(-time.Hour)
	for _, p := range w.all[:2] {
		p.dead = true
		w.start()
	}
	begin := w.now
	w.pass(2*time.Second, nil)
	w.all[2].dead = true
	w.wait(breaker.Closed, time.Minute, w.calls)
	if took := w.now - begin; took > 24*time.Second {
		t.Errorf("closed %v after the store was set back, want 20s and a little", took)
	}
}

// A decision that a process made alone counts if the fleet has made none since.
func TestTheNewerDecisionWinsOnReturn(t *testing.T) {
	c := breaker.Config{Failures: 3, Open: 3 * time.Second, Successes: 1}
	for seed := range uint64(20) {
		w := newWorld(t, seed, c, 4)
		w.pass(2*time.Second, nil)
		a, b := w.all[0], w.all[1]
		w.trouble = func(p *process) error {
			if p == a {
				return errAway
			}
			return nil
		}
		w.pass(5*time.Second, nil)
		fleet := func(class outcome.Class) func() {
			return func() {
				for _, p := range w.all[1:] {
					p.call(class)
				}
			}
		}
		w.pass(2*time.Second, fleet(outcome.Failed))
		w.pass(8*time.Second, fleet(outcome.OK))
		if b.b.State().Phase != breaker.Closed || b.b.State().Gen == 0 {
			w.fatal("the fleet did not open and close: %+v", b.b.State())
		}
		w.trip(a)
		w.trouble = nil
		if took := w.wait(breaker.Open, 4*time.Second, nil); took > 3*poll {
			w.fatal("open after %v", took)
		}
		w.wait(breaker.Closed, 20*time.Second, w.calls)

		w.trouble = func(p *process) error {
			if p == a {
				return errAway
			}
			return nil
		}
		w.pass(5*time.Second, nil)
		w.trip(a)
		a.still = true // it decides before the fleet
		w.pass(time.Second, nil)
		w.trip(b)
		w.pass(time.Second, nil)
		gen := w.entry().Gen
		a.still, w.trouble = false, nil
		w.pass(2*time.Second, nil)
		if e := w.entry(); e.Gen != gen || a.b.State().Phase != breaker.Open {
			w.fatal("generation %d became %+v by what a had decided before it", gen, e)
		}
	}
}

// If two breakers open independently, this is one change.
func TestWhoTripsLaterFollowsWhoTrippedFirst(t *testing.T) {
	w := newWorld(t, 8, breaker.Config{Failures: 3}, 2)
	w.pass(2*time.Second, nil)
	a, b := w.all[0], w.all[1]
	b.still = true
	w.trip(a)
	w.pass(200*time.Millisecond, nil)
	first := w.entry()
	w.trip(b)
	b.still = false
	w.pass(2*time.Second, nil)
	if e := w.entry(); e != first || len(b.changes) != 1 {
		t.Errorf("%+v became %+v; b was told %v", first, e, b.changes)
	}
	if s, at := b.b.State(), a.b.State().Until-a.off; s.Until-b.off-at > time.Millisecond || at-(s.Until-b.off) > time.Millisecond {
		t.Errorf("open until %v for a and %v for b", at, s.Until-b.off)
	}
}

// An operator's decision overrides decisions of the fleet.
func TestAHandIsStrongerThanTheFleet(t *testing.T) {
	w := newWorld(t, 9, breaker.Config{Failures: 3}, 5)
	w.pass(2*time.Second, nil)
	b := w.all[1]
	b.still = true
	w.trip(w.all[0])
	w.pass(time.Second, nil)
	b.b.ForceClose(b.now())
	b.still = false
	w.wait(breaker.Closed, 2*time.Second, nil)
	if e := w.entry(); !e.Held || e.Why != breaker.Forced {
		t.Errorf("%+v", e)
	}
}

// A process returns with old state. The store was emptied and refilled meanwhile. The process must not conclude
// that the store lost data.
func TestOldKnowledgeDoesNotReturn(t *testing.T) {
	w := newWorld(t, 10, breaker.Config{Failures: 3, Open: time.Minute}, 1)
	a := w.all[0]
	w.pass(2*time.Second, nil)
	for range 20 {
		a.b.ForceOpen(a.now(), 0)
		w.pass(200*time.Millisecond, nil)
	}
	a.b.ForceClose(a.now())
	w.pass(time.Second, nil)
	a.still = true
	w.store = fleet.NewMemory(func() time.Time { return w.epoch.Add(w.now) })
	b := w.start()
	w.pass(2*time.Second, nil)
	w.trip(b)
	w.pass(time.Second, nil)
	a.still = false
	w.pass(2*time.Second, nil)
	if a.b.State().Phase != breaker.Open || b.b.State().Phase != breaker.Open {
		t.Errorf("a %v, b %v: want what b found since", a.b.State().Phase, b.b.State().Phase)
	}
}

func TestARepeatedAskSaysSo(t *testing.T) {
	w := newWorld(t, 11, breaker.Config{Failures: 9}, 1)
	w.pass(2*time.Second, nil)
	a := w.all[0]
	lose := 2
	w.lost = func(*process) error {
		if lose--; lose >= 0 {
			return errAway
		}
		return nil
	}
	a.s.pullAt = breaker.Forever // only the asks are lost
	a.call(outcome.Failed)
	w.pass(3*time.Second, nil)
	for i, ask := range a.asks {
		if ask.ID == 0 || ask.ID != a.asks[0].ID || ask.Again != (i > 0) {
			t.Errorf("ask %d: ID %d, again %v", i, ask.ID, ask.Again)
		}
	}
	if n := w.counted(a.s, ""); n != 1 || len(a.asks) < 2 {
		t.Errorf("%d failures counted in %d asks, want 1 in 2 or more", n, len(a.asks))
	}
}

// A count of an older generation opens no breaker.
func TestCountsOfAnOlderGenerationTripNothing(t *testing.T) {
	w := newWorld(t, 12, breaker.Config{Failures: 2, Open: time.Second, Successes: 1}, 2)
	w.pass(2*time.Second, nil)
	a, b := w.all[0], w.all[1]
	b.call(outcome.Failed)
	w.pass(time.Second, nil)
	w.lost = func(p *process) error {
		if p == a {
			return errAway
		}
		return nil
	}
	a.s.pullAt = breaker.Forever
	a.call(outcome.Failed) // the store counts two, but a loses the answer
	w.pass(200*time.Millisecond, nil)
	b.b.ForceOpen(b.now(), time.Second)
	w.pass(5*time.Second, func() { b.call(outcome.OK) })
	if b.b.State().Phase != breaker.Closed || a.s.pending == nil {
		t.Fatalf("b %v, a waits: %v", b.b.State().Phase, a.s.pending)
	}
	w.lost = nil
	w.pass(3*time.Second, nil)
	if n := w.phases(); n[breaker.Closed] != 2 || a.s.pending != nil {
		t.Errorf("%v closed, open, half-open", n)
	}
}

// Failures that reach the store late would count too long.
func TestOldFailuresAreNotCounted(t *testing.T) {
	for _, noTake := range []bool{false, true} {
		w := newWorld(t, 13, breaker.Config{Failures: 3, Window: 10 * time.Minute}, 2)
		w.pass(2*time.Second, nil)
		a, b := w.all[0], w.all[1]
		if w.noTake = noTake; !noTake {
			w.trouble = func(*process) error { return errAway }
			w.pass(3*time.Second, nil) // long enough that the loop tries nothing else
		}
		a.call(outcome.Failed)
		a.call(outcome.Failed)
		w.pass(time.Minute, nil)
		w.noTake, w.trouble = false, nil
		w.pass(3*time.Second, nil)
		b.call(outcome.Failed)
		w.pass(3*time.Second, nil)
		if n := w.phases(); n[breaker.Closed] != 2 || w.counted(b.s, "") != 1 {
			t.Errorf("without takes %v: %v closed, open, half-open; %d counted", noTake, n, w.counted(b.s, ""))
		}
	}
}

// The hint of the failure that opens the breaker sets the open time of the fleet.
func TestTheFleetHearsTheHint(t *testing.T) {
	w := newWorld(t, 14, breaker.Config{Failures: 2}, 3)
	w.pass(2*time.Second, nil)
	for _, p := range w.all[:2] {
		permit, _, _ := p.b.Admit(p.now())
		hint := outcome.Hint{Said: true, After: 3 * time.Minute}
		p.b.Report(p.now(), permit, outcome.Outcome{Class: outcome.Failed, Hint: hint})
	}
	w.wait(breaker.Open, 2*time.Second, nil)
	w.pass(3*time.Minute-5*time.Second, w.calls)
	if n := w.phases(); n[breaker.Open] != 3 {
		t.Errorf("%v closed, open, half-open before the time of the hint is over", n)
	}
	w.wait(breaker.Closed, 10*time.Second, w.calls)
}

// Turning a breaker off or on does not change the fleet.
func TestTurningOffResetsNobody(t *testing.T) {
	w := newWorld(t, 15, breaker.Config{Failures: 3, Open: time.Minute}, 4)
	w.pass(2*time.Second, nil)
	a := w.all[0]
	w.trip(a)
	w.wait(breaker.Open, 2*time.Second, nil)
	a.b.SetConfig(a.now(), breaker.Config{Off: true})
	w.pass(3*time.Second, nil)
	if n := w.phases(); n[breaker.Open] != 3 || n[breaker.Closed] != 1 {
		t.Errorf("off: %v closed, open, half-open", n)
	}
	a.b.SetConfig(a.now(), w.cfg)
	w.wait(breaker.Open, 2*time.Second, nil)
}

// A full group uses one breaker for all further keys. It stays in the process, because other processes use theirs
// for other keys.
func TestOtherStaysInTheProcess(t *testing.T) {
	w := newWorld(t, 16, breaker.Config{Failures: 3, Open: time.Minute}, 0)
	g := breaker.NewGroup(1, w.cfg, nil)
	p := &process{w: w}
	s := New(Config{Store: flaky{p}, Group: "up", Scope: "tenant", Clock: own{p}, Rand: rand.New(rand.NewPCG(1, 1))}, g)
	now := w.now
	permit, _, _ := g.For(now, "first").Admit(now)
	g.For(now, "first").Report(now, permit, outcome.Outcome{Class: outcome.Failed})
	for range 3 {
		permit, _, _ := g.For(now, "second").Admit(now)
		g.For(now, "second").Report(now, permit, outcome.Outcome{Class: outcome.Failed})
	}
	s.Sync(t.Context())
	s.Sync(t.Context())
	if phase := g.For(now, "second").State().Phase; phase != breaker.Open {
		t.Errorf("second is %v", phase)
	}
	if n := s.Stats(); n.Swaps != 0 || n.Takes != 1 {
		t.Errorf("%+v: the store was told of more than the first key", n)
	}
	if _, _, ok := g.For(now, "second").Admit(now + 2*time.Minute); !ok {
		t.Error("it does not probe by itself")
	}
}

// A breaker that a group created again for a key follows like the previous one.
func TestAKeyThatCameBackFollows(t *testing.T) {
	w := newWorld(t, 18, breaker.Config{Failures: 3, Open: time.Minute}, 0)
	var sharers []*Breakers
	var groups []*breaker.Group
	for range 2 {
		g := breaker.NewGroup(1, w.cfg, nil)
		s := New(Config{Store: flaky{&process{w: w}}, Group: "up", Scope: "tenant", Clock: own{&process{w: w}}, Rand: w.r}, g)
		g.For(w.now, "a")
		s.Sync(t.Context())
		groups, sharers = append(groups, g), append(sharers, s)
	}
	before := groups[0].For(w.now, "a")
	for range 4 { // each displaces the other
		groups[0].For(w.now, "b")
		w.now += 2 * time.Second
		groups[0].For(w.now, "a")
		w.now += 2 * time.Second
	}
	after := groups[0].For(w.now, "a")
	if before == after {
		t.Fatal("the key was never displaced")
	}
	for range 3 {
		permit, _, _ := groups[1].For(w.now, "a").Admit(w.now)
		groups[1].For(w.now, "a").Report(w.now, permit, outcome.Outcome{Class: outcome.Failed})
	}
	sharers[1].Sync(t.Context())
	sharers[0].Sync(t.Context())
	if phase := after.State().Phase; phase != breaker.Open {
		t.Errorf("the new breaker is %v", phase)
	}
}

// The first read of a healthy fleet, which was open before, does not reset the counts of a new process.
func TestAFirstLookChangesNothingIfAllIsWell(t *testing.T) {
	w := open(t, 19, breaker.Config{Successes: 1}, 2)
	w.wait(breaker.Closed, 10*time.Second, w.calls)
	p := w.start()
	permit, _, _ := p.b.Admit(p.now())
	w.pass(2*time.Second, nil)
	p.b.Report(p.now(), permit, outcome.Outcome{Class: outcome.Failed})
	w.pass(time.Second, nil)
	if n := w.counted(p.s, ""); n != 1 || len(p.changes) > 0 {
		t.Errorf("%d failures counted, want 1; told %v", n, p.changes)
	}
	before := w.all[0].s.Stats().Swaps + w.all[1].s.Stats().Swaps
	w.store = fleet.NewMemory(func() time.Time { return w.epoch.Add(w.now) })
	w.pass(5*time.Second, nil)
	if after := w.all[0].s.Stats().Swaps + w.all[1].s.Stats().Swaps; after != before {
		t.Errorf("%d swaps to tell an emptied store that all is well", after-before)
	}
}

// A probe that a process makes for itself while the store is unreachable becomes the fleet's when the store
// returns.
func TestAProbeMadeAloneIsTheFleetsOnReturn(t *testing.T) {
	w := newWorld(t, 20, breaker.Config{Failures: 3, Open: 10 * time.Second, Successes: 1}, 3)
	w.pass(2*time.Second, nil)
	w.trip(w.all[0])
	w.wait(breaker.Open, 2*time.Second, nil)
	w.trouble = func(*process) error { return errAway }
	w.pass(12*time.Second, nil)
	a := w.all[0]
	permit, _, ok := a.b.Admit(a.now())
	if !ok || !permit.Probe {
		t.Fatal("a does not probe by itself")
	}
	w.trouble = nil
	w.pass(4*time.Second, nil)
	if e := w.entry(); e.Phase != breaker.HalfOpen || e.Holder != a.s.id {
		t.Errorf("%+v, want the probe of a", e)
	}
	w.pass(5*time.Second, func() {
		for _, p := range w.all {
			if _, _, ok := p.b.Admit(p.now()); ok {
				t.Fatal("two probes at once")
			}
		}
	})
	a.b.Report(a.now(), permit, outcome.Outcome{Class: outcome.OK})
	w.wait(breaker.Closed, 2*time.Second, nil)
}

// Open breakers that do not fit into a record decide for themselves.
func TestMoreThanARecordHoldsDecideAlone(t *testing.T) {
	w := newWorld(t, 17, breaker.Config{Failures: 1, Open: time.Minute}, 0)
	const keys = 9000
	g := breaker.NewGroup(keys, w.cfg, nil)
	p := &process{w: w}
	s := New(Config{Store: flaky{p}, Group: "up", Scope: "tenant", Clock: own{p}, Rand: rand.New(rand.NewPCG(1, 1))}, g)
	s.Sync(t.Context())
	for i := range keys {
		b := g.For(w.now, fmt.Sprint(i))
		permit, _, _ := b.Admit(w.now)
		b.Report(w.now, permit, outcome.Outcome{Class: outcome.Failed})
	}
	for range 5 {
		w.now += 2 * time.Second
		s.Sync(t.Context())
	}
	if s.Leads(w.now) {
		t.Error("the fleet still leads")
	}
	w.now += time.Minute
	for i := range keys {
		if _, _, ok := g.For(w.now, fmt.Sprint(i)).Admit(w.now); !ok {
			t.Fatalf("key %d is shut out", i)
		}
	}
}
