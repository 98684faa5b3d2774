package inflight

import (
	"testing"
	"time"
)

// While the upstream stalls, and for a moment after that, few calls keep waiting. Calls in a crowd do not, and no
// call at a fixed bound does.
func TestFewWaitWhileTheUpstreamStandsStill(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  Config
		waiting int
		waits   bool
	}{{"few", Config{}, 180, true}, {"a crowd", Config{}, 201, false}, {"a fixed bound", Config{Limit: 30}, 180, false}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.config)
			r.calm(20, 20, 20*time.Millisecond)
			slots := r.fill()
			came := r.now
			if r.Longer(r.now, came, c.waiting, false) > r.now {
				t.Error("it need not wait longer: answers are due in a moment")
			}
			for range 15 {
				r.now += time.Second
				if got := r.Longer(r.now, came, c.waiting, false) > r.now; got != c.waits {
					t.Fatalf("%v after it began to stand still: longer %v", r.now-came, got)
				}
			}
			r.answer(slots[0])
			if got := r.Longer(r.now, came, c.waiting, false) > r.now; got != c.waits {
				t.Errorf("when it goes on: longer %v", got)
			}
			for _, s := range slots[1:] {
				r.answer(s)
			}
			r.now += time.Second
			if r.Longer(r.now, came, c.waiting, false) > r.now {
				t.Error("a second later it waits still")
			}
		})
	}
}

// After a waiting caller has left, no wait of other calls is extended.
func TestNobodyWaitsForLongWhereOthersHaveLeft(t *testing.T) {
	r := newRig(t, Config{})
	r.calm(20, 20, 20*time.Millisecond)
	r.fill()
	came := r.now
	r.now += 2 * time.Second
	if r.Longer(r.now, came, 20, false) <= r.now {
		t.Error("few wait, and nobody has left: they are kept")
	}
	r.GaveUp(r.now)
	if r.Longer(r.now, came, 20, false) > r.now {
		t.Error("one has left, and the others are kept")
	}
}

// If every caller leaves before the response, later responses show that there is a queue at the upstream, and the
// bound examines it.
func TestWhatLeaversWouldHaveHeardIsLearnt(t *testing.T) {
	r := newRig(t, Config{})
	r.calm(200, 20, 5*ms)
	type left struct {
		slot Slot
		at   time.Duration // when its response arrives
	}
	var kept []left
	for range 1500 { // responses take 1.5 s, and callers leave immediately
		r.now += 20 * ms
		for len(kept) > 0 && kept[0].at <= r.now {
			r.Heard(r.now, kept[0].slot, Answer{Sent: r.sent[kept[0].slot], Waited: 10 * time.Second})
			kept = kept[1:]
		}
		if s, ok := r.take(); ok {
			r.Left(r.now, s, nil)
			kept = append(kept, left{s, r.now + 1500*ms})
		}
	}
	if v := r.Look(r.now); v.Base < time.Second && v.Drains == 0 {
		t.Errorf("30 s of answers after 1.5 s that nobody waited for, and it has noticed nothing: %+v", v)
	}
}

// A call with a lower priority behind it keeps waiting while more attempts are in flight than the bound, after a
// drain began or the bound fell: no call proceeds then, whatever its priority. A call with none behind it does not.
func TestCallsBeforeOthersOutwaitADrain(t *testing.T) {
	for name, holdUp := range map[string]func(*rig){
		"drain":         func(r *rig) { r.state.cut(r.now, false) },
		"a lower bound": func(r *rig) { r.Set(r.now, Config{Max: 5}) },
		"nothing":       func(*rig) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			r.calm(20, 20, 20*time.Millisecond)
			r.fill()
			r.GaveUp(r.now)
			came := r.now
			r.now += 200 * time.Millisecond
			holdUp(r)
			if want := name != "nothing"; r.Longer(r.now, came, 10, true) > r.now != want || r.Longer(r.now, came, 10, false) > r.now {
				t.Errorf("until %v before others, %v before none, at %v", r.Longer(r.now, came, 10, true), r.Longer(r.now, came, 10, false), r.now)
			}
			if r.Stands(r.now, time.Minute, true) != (name == "nothing") || !r.Stands(r.now, time.Minute, false) {
				t.Errorf("the queue stands: %v before others, %v before none", r.Stands(r.now, time.Minute, true), r.Stands(r.now, time.Minute, false))
			}
			if r.now += hastySpell; r.Longer(r.now, came, 10, true) > max(r.now, r.Longer(r.now, came, 10, false)) {
				t.Error("it waits on although the hold-up was long ago")
			}
		})
	}
}

// Calls that fit and go before others find a queue for seconds if the upstream has few workers. They wait up to 3 s in
// order of arrival, unless a caller has left: then the newest go first, as in other queues.
func TestCallsBeforeOthersWaitUntilACallerLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		leaves func(*rig)
		before bool
		wait   time.Duration
	}{
		"before others":                      {func(*rig) {}, true, hastySpell},
		"before none":                        {func(*rig) {}, false, shortWait},
		"a waiting caller has left":          {func(r *rig) { r.GaveUp(r.now) }, true, shortWait},
		"a caller without response left":     {func(r *rig) { r.state.loses(r.now) }, true, shortWait},
		"a caller left long ago":             {func(r *rig) { r.GaveUp(r.now - Held) }, true, hastySpell},
		"one without response left long ago": {func(r *rig) { r.state.loses(r.now - rememberBad) }, true, hastySpell},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			r.calm(20, 20, 20*time.Millisecond)
			r.fill()
			c.leaves(r)
			wait, stands := r.Wait(r.now, time.Minute, c.before), r.Stands(r.now, time.Minute, c.before)
			if wait != c.wait || stands != (c.wait == shortWait) {
				t.Errorf("it may wait %v, and the newest goes first: %v; want %v", wait, stands, c.wait)
			}
		})
	}
}
