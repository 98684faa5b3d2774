package breakers

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// counted returns how many failures the store has counted for a breaker.
func (w *world) counted(s *Breakers, key string) int64 {
	w.t.Helper()
	c := w.cfg
	t := s.seats[key]
	a := fleet.Ask{Group: "up", ID: 1, Lane: 1, Claims: []fleet.Claim{{Rule: rule(&c), Key: t.counter(), Cost: 1}}}
	if err := w.store.Take(w.t.Context(), &a); err != nil {
		w.t.Fatal(err)
	}
	return int64(c.Failures) - a.Grants[0].Left
}

// The store counts every failure once, even if calls or their answers are lost.
func TestFailuresOfManyWritersAreCountedExactly(t *testing.T) {
	const writers, each = 64, 200
	w := newWorld(t, 11, breaker.Config{Failures: 1 << 30, Window: time.Hour}, 4) // the store counts no failures of an open breaker
	w.pass(2*time.Second, nil)
	broken := func(*process) error {
		if w.r.IntN(3) == 0 {
			return errAway
		}
		return nil
	}
	w.trouble, w.lost = broken, broken
	for range 10 {
		var all sync.WaitGroup
		for i := range writers {
			p := w.all[i%len(w.all)]
			all.Go(func() {
				for range each / 10 {
					p.call(outcome.Failed)
				}
			})
		}
		all.Wait()
		w.pass(time.Second, nil)
	}
	w.trouble, w.lost = nil, nil
	w.pass(5*time.Second, nil)
	if n := w.counted(w.all[0].s, ""); n != writers*each {
		t.Errorf("%d failures counted, want %d", n, writers*each)
	}
}

// Failures from before the breaker opened do not count after it closes.
func TestAClosedFleetBeginsToCountAnew(t *testing.T) {
	w := newWorld(t, 12, breaker.Config{Failures: 10, Window: time.Hour, Open: 5 * time.Second}, 10)
	w.pass(2*time.Second, nil)
	for _, p := range w.all {
		p.call(outcome.Failed)
	}
	w.wait(breaker.Open, 2*time.Second, nil)
	w.wait(breaker.Closed, 20*time.Second, w.calls)
	for _, p := range w.all[1:] {
		p.call(outcome.Failed)
	}
	w.pass(10*time.Second, nil)
	if n := w.phases(); n[breaker.Closed] != 10 {
		t.Errorf("%v closed, open, half-open after 9 failures", n)
	}
	w.all[0].call(outcome.Failed)
	w.wait(breaker.Open, 2*time.Second, nil)
}

// An upstream accepts probes and fails all other calls. The breaker of the fleet opens and closes at most as often
// as its open time allows, and each process follows at most as often.
func TestFlappingIsBounded(t *testing.T) {
	w := newWorld(t, 13, breaker.Config{Failures: 5, Open: 10 * time.Second, Successes: 1}, 30)
	w.pass(2*time.Second, nil)
	const minutes = 20
	w.pass(minutes*time.Minute, func() {
		for _, p := range w.all {
			if permit, _, ok := p.b.Admit(p.now()); ok && permit.Probe {
				p.b.Report(p.now(), permit, outcome.Outcome{Class: outcome.OK})
			} else if ok && w.r.IntN(20) == 0 {
				p.b.Report(p.now(), permit, outcome.Outcome{Class: outcome.Failed})
			}
		}
	})
	for _, p := range w.all {
		opened := 0
		for _, c := range p.changes {
			if c.To == breaker.Open {
				opened++
			}
		}
		if opened > minutes*6 || opened < minutes*3 {
			t.Errorf("process %d opened %d times in %d minutes, want 6 a minute at most", p.n, opened, minutes)
		}
	}
}

func TestStateExpiresAfterSevenIdleDays(t *testing.T) {
	w := newWorld(t, 14, breaker.Config{Failures: 2, Open: time.Minute}, 2)
	w.pass(2*time.Second, nil)
	w.all[0].call(outcome.Failed)
	w.all[0].call(outcome.Failed)
	w.wait(breaker.Open, 2*time.Second, nil)
	for _, p := range w.all {
		p.dead = true
	}
	w.now += keep - time.Minute
	p := w.start()
	w.pass(2*time.Second, nil)
	if got := p.b.State().Phase; got != breaker.Open {
		t.Errorf("a minute before the end of the week a new process is %v, want open", got)
	}
	w.now += time.Minute
	w.pass(2*time.Second, nil)
	if got := p.b.State().Phase; got != breaker.Closed {
		t.Errorf("after a week without a call it is %v, want closed", got)
	}
	q := w.start()
	w.pass(2*time.Second, nil)
	if got := q.b.State().Phase; got != breaker.Closed || len(q.changes) > 0 {
		t.Errorf("after a week a new process is %v, want closed", got)
	}
}

// A forced state lasts while a process uses it.
func TestForcedOutlastsAWeek(t *testing.T) {
	w := newWorld(t, 15, breaker.Config{}, 3)
	w.pass(2*time.Second, nil)
	w.all[0].b.ForceOpen(w.all[0].now(), 0)
	w.wait(breaker.Open, 2*time.Second, nil)
	for range 20 {
		w.now += 24 * time.Hour
		w.pass(2*time.Second, nil)
	}
	w.start()
	w.pass(2*time.Second, nil)
	if n := w.phases(); n[breaker.Open] != 4 {
		t.Fatalf("%v closed, open, half-open after 20 days", n)
	}
	for _, p := range w.all {
		p.dead = true
	}
	w.now += keep + 48*time.Hour
	p := w.start()
	w.pass(2*time.Second, nil)
	if got := p.b.State().Phase; got != breaker.Closed {
		t.Errorf("a week after the last process it is %v, want closed", got)
	}
}

// A store that was emptied, or lost its latest writes, gets the state from the processes.
func TestAnEmptiedStoreLearnsFromTheFleet(t *testing.T) {
	w := newWorld(t, 16, breaker.Config{Failures: 3, Open: 20 * time.Second, Successes: 1}, 10)
	w.pass(2*time.Second, nil)
	for range 3 {
		w.all[0].call(outcome.Failed)
	}
	w.wait(breaker.Open, 2*time.Second, nil)
	w.store = fleet.NewMemory(func() time.Time { return w.epoch.Add(w.now) })
	w.pass(3*time.Second, w.calls)
	p := w.start()
	w.pass(2*time.Second, w.calls)
	if n := w.phases(); n[breaker.Open] != 11 || len(p.changes) != 1 {
		t.Errorf("%v closed, open, half-open after the store was emptied; want all open", n)
	}
	w.wait(breaker.Closed, 20*time.Second, w.calls)
}

func TestAGarbledRecordIsWrittenAnew(t *testing.T) {
	w := newWorld(t, 17, breaker.Config{Failures: 3, Open: 20 * time.Second, Successes: 1}, 5)
	for _, value := range []string{"", "{", `"no"`, `{"gen":1,"keys":{"":{"gen":1,"phase":9}}}`, `{"gen":1,"keys":{"":{"gen":7}}}`, "\xff\x00"} {
		w.pass(2*time.Second, nil)
		for range 3 {
			w.all[0].call(outcome.Failed)
		}
		w.wait(breaker.Open, 2*time.Second, nil)
		r, _, err := w.store.Load(t.Context(), "up", []string{"breaker"})
		if err != nil {
			t.Fatal(err)
		}
		r[0].Value, r[0].Keep = []byte(value), keep
		if _, ok, err := w.store.Swap(t.Context(), "up", r[0]); !ok || err != nil {
			t.Fatal(ok, err)
		}
		w.pass(5*time.Second, nil)
		if r, _, _ = w.store.Load(t.Context(), "up", []string{"breaker"}); w.phases()[breaker.Open] != 5 {
			t.Errorf("%q: %v closed, open, half-open; want all open", value, w.phases())
		}
		if _, err := decode(r[0]); err != nil {
			t.Errorf("%q still stands: %v", value, err)
		}
		w.wait(breaker.Closed, 40*time.Second, w.calls)
	}
}

func TestKeysThatNoStoreCouldHold(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range []string{"", "a", "#a", "{}\n\"", strings.Repeat("x", 300), strings.Repeat("x", 301), "\xff", "\xfe", "ünï"} {
		l := label(key)
		if seen[l] || len(l) > longestLabel {
			t.Errorf("%q stands as %q", key, l)
		}
		seen[l] = true
		if bytes.ContainsRune([]byte(l), '\uFFFD') {
			t.Errorf("%q: not text", l)
		}
	}
}

// In a fleet of groups, all processes follow a change of a key, and other keys do not change.
func TestKeysOfAGroupTripApart(t *testing.T) {
	w := newWorld(t, 18, breaker.Config{Failures: 4, Open: 5 * time.Second, Successes: 1}, 0)
	const keys, processes = 300, 4
	var all []*breaker.Group
	var sharers []*Breakers
	for n := range processes {
		g := breaker.NewGroup(0, w.cfg, nil)
		p := &process{w: w, n: n, off: time.Duration(n) * time.Hour}
		all = append(all, g)
		sharers = append(sharers, New(Config{Store: flaky{p}, Group: "up", Scope: "tenant", Clock: own{p}, Rand: w.r}, g))
	}
	key := func(i int) string { return fmt.Sprintf("tenant {%d}\n", i) }
	sync := func(d time.Duration) {
		for end := w.now + d; w.now < end; w.now += 500 * time.Millisecond {
			for _, s := range sharers {
				s.pullAt = 0
				s.Sync(context.Background())
			}
		}
	}
	touch := func(class outcome.Class, every int) (admitted int) {
		for n, g := range all {
			now := w.now + time.Duration(n)*time.Hour
			for i := range keys {
				b := g.For(now, key(i))
				if permit, _, ok := b.Admit(now); ok {
					admitted++
					if i%every == 0 {
						b.Report(now, permit, outcome.Outcome{Class: class})
					}
				}
			}
		}
		return admitted
	}
	sync(time.Second)
	touch(outcome.Failed, 3)
	sync(2 * time.Second)
	for n, g := range all {
		for i := range keys {
			want := breaker.Closed
			if i%3 == 0 {
				want = breaker.Open
			}
			if got := g.For(w.now+time.Duration(n)*time.Hour, key(i)).State().Phase; got != want {
				t.Fatalf("process %d, key %d: %v, want %v", n, i, got, want)
			}
		}
	}
	w.now += 3 * time.Second
	touch(outcome.OK, 1)
	sync(time.Second)
	if n := touch(outcome.OK, 1); n != processes*keys*2/3+keys/3 {
		t.Errorf("%d calls admitted, want those of closed keys and one for each that is open", n)
	}
	sync(time.Second)
	if n := touch(outcome.OK, 1); n != processes*keys {
		t.Errorf("%d calls admitted, want all", n)
	}
	var swaps int64
	for _, s := range sharers {
		swaps += s.Stats().Swaps
	}
	if swaps > 100 {
		t.Errorf("%d swaps for 300 changes of 100 keys", swaps)
	}
}

// A breaker that is turned off ignores the fleet, but can be forced.
func TestABreakerThatIsOffObeysHandsOnly(t *testing.T) {
	w := newWorld(t, 19, breaker.Config{Failures: 3, Open: 5 * time.Second, Successes: 1}, 4)
	w.pass(2*time.Second, nil)
	off := w.all[3]
	off.b.SetConfig(off.now(), breaker.Config{Off: true})
	for range 3 {
		w.all[0].call(outcome.Failed)
	}
	w.pass(2*time.Second, nil)
	if n := w.phases(); n[breaker.Open] != 3 || off.b.State().Phase != breaker.Closed {
		t.Errorf("%v closed, open, half-open", n)
	}
	w.all[1].b.ForceOpen(w.all[1].now(), 0)
	w.wait(breaker.Open, 2*time.Second, nil)
	w.all[1].b.Reset(w.all[1].now())
	w.wait(breaker.Closed, 2*time.Second, nil)
	for range 3 {
		w.all[0].call(outcome.Failed)
	}
	w.pass(2*time.Second, nil)
	off.b.SetConfig(off.now(), w.cfg)
	w.wait(breaker.Open, 2*time.Second, nil)
}
