package weir

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/fleet/pauses"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
)

// Pause lets an operator stop all calls of a subject for a time, at most pause.Longest, or until Resume if length is
// 0. It applies to the fleet, or only to this process if here is set. If the subject is unknown, the error lists the
// known ones.
func (u *Upstream) Pause(of pause.Subject, length time.Duration, here bool) error {
	if length < 0 || length > pause.Longest {
		return fmt.Errorf("for %v: want a time up to %d days", length, pause.Longest/(24*time.Hour))
	}
	said := length > 0
	if !said {
		length = pause.Longest
	}
	if err := u.live.Load().knows(of); err != nil {
		return err
	}
	now, why := u.clock.Now(), pause.Hand
	if here {
		why = pause.Here
	}
	u.pauses.pause(now, of, of.Key, why, pause.Span{Until: later(now, length), Known: said})
	u.lines.Kick()
	e := u.pauses.In(now, of)
	u.pauses.tell(u.options.Events.Paused, now, of, &e, ByHand)
	return nil
}

// Resume ends the pauses of a subject early, whatever their source, including the pauses of its parts: for a limit
// the pauses of its keys, for the upstream all pauses. It returns how many it ended. It applies to the fleet, or only
// to this process if here is set. If the subject is unknown, the error lists the known ones.
func (u *Upstream) Resume(of pause.Subject, here bool) (lifted int, err error) {
	now := u.clock.Now()
	known, all := u.live.Load().knows(of), u.pauses.Lift(now, of, here)
	if len(all) == 0 && known != nil {
		return 0, known
	}
	u.pauses.resumed(now, all, ByHand)
	u.pauses.share()
	return len(all), nil
}

// knows returns what is wrong with a subject. A pause of an unknown subject would have no effect.
func (v *live) knows(of pause.Subject) error {
	switch of.Kind {
	case pause.Upstream:
		return nil
	case pause.Pool:
		if of.Name == "" {
			return fmt.Errorf("pool: must not be empty")
		}
		return nil
	case pause.Limit, pause.Key:
		return v.knowsLimit(of)
	case pause.Operation:
		if v.plans[of.Name] != nil {
			return nil
		}
		return fmt.Errorf("operation %q: %s has no such operation; want one of %s", of.Name, v.u.name, listed(slices.Sorted(maps.Keys(v.plans))))
	}
	return fmt.Errorf("%v: nothing to pause", of)
}

// knowsLimit is knows for a limit or one of its keys.
func (v *live) knowsLimit(of pause.Subject) error {
	var names []string
	for i := range v.policy.Limits {
		l := &v.policy.Limits[i]
		if l.Name == of.Name {
			return knowsKey(l, of)
		}
		names = append(names, l.Name)
	}
	return fmt.Errorf("limit %q: unknown limit; want one of %s", of.Name, listed(names))
}

// knowsKey reports whether the limit has such keys.
func knowsKey(l *limit.Limit, of pause.Subject) error {
	switch {
	case of.Kind == pause.Limit:
		return nil
	case of.Scope == l.Scope && scopes.Several(l.Scope):
		if len(of.Key) < longestKey && !scopes.Is(l.Scope, of.Key) {
			return fmt.Errorf("key %q: limit %s counts each combination of values: want a key such as %q", of.Key, l.Name, exampleKey(l.Scope))
		}
		return nil
	case of.Scope == l.Scope && l.Scope != "":
		return nil
	case l.Scope == "":
		return fmt.Errorf("key %q: limit %s has no keys; leave key out", of.Key, l.Name)
	}
	return fmt.Errorf("key %q: limit %s has the scope %s, not %s", of.Key, l.Name, l.Scope, of.Scope)
}

// exampleKey returns a key of a combination of scopes.
func exampleKey(scope string) string {
	names, values := scopes.Names(scope), make(map[string]string)
	for i, name := range names {
		values[name] = string(rune('a' + i%26))
	}
	return scopes.Key(names, values)
}

// listed formats names for people.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// A PauseView is a pause in force. It applies to the calls of a pool, of an operation, of a limit, of one key of a
// limit if Scope is set, or to all calls.
type PauseView struct {
	Kind      pause.Kind
	Limit     string
	Scope     string
	Key       string
	Pool      string
	Operation string
	Left      time.Duration
	Open      bool // until an operator resumes; Left is the maximum
	Reason    pause.Reason
	ResetAt   time.Time // for a quota, when it resets, if the upstream sent that
	By        string    // the process that learned of it first; "" without a fleet
}

// Subject returns what the pause applies to.
func (v *PauseView) Subject() pause.Subject {
	return pause.Subject{Kind: v.Kind, Name: cmp.Or(v.Limit, v.Pool, v.Operation), Scope: v.Scope, Key: v.Key}
}

// A pausing holds an upstream's pauses. The Book has their subjects and ends, whether they come from a hint, an
// operator or another process. Each decision reads it, which costs one atomic load while there is no pause.
//
// In a fleet a background loop writes new pauses to the store and reads those of other processes (package
// fleet/pauses). Only the first call of a process waits for it.
type pausing struct {
	pause.Book
	u       *Upstream
	records *pauses.Pauses // shares the pauses; nil without a fleet
	leave   func()         // removes them from the fleet; nil without a fleet
	obeying sync.Mutex     // see obey
	hints   sharedHints
}

// pause adds a pause that lasts until s.Until. Of two pauses of one subject the longer one applies. It also pauses
// the limiters of the subject, and informs the fleet.
func (p *pausing) pause(now time.Duration, of pause.Subject, key string, why pause.Reason, s pause.Span) {
	if !p.Add(now, of, why, s) {
		p.limiters(now, of, key, func(m *limit.Limiter) { m.Pause(now, s.Until) })
		return
	}
	p.obey(now, of, key)
	p.share()
}

// share informs the fleet of a change.
func (p *pausing) share() {
	if p.records != nil {
		p.records.Changed()
	}
}

// obey pauses the limiter of a key as long as the Book requires. That only keeps the queued calls in place. The Book
// decides which calls may proceed, also for limiters made later. p.obeying keeps the two consistent. Nothing waits or
// calls out while it is held.
func (p *pausing) obey(now time.Duration, of pause.Subject, key string) {
	p.obeying.Lock()
	defer p.obeying.Unlock()
	e := p.In(now, of)
	until := e.Until()
	p.limiters(now, of, key, func(m *limit.Limiter) {
		if left := m.Look(now).Paused; left > 0 && until < now+left {
			m.Resume(now)
		}
		m.Pause(now, until)
	})
}

// limiters calls do for the limiters that only calls of the subject use. It omits the limiter shared by keys beyond
// the maximum.
func (p *pausing) limiters(now time.Duration, of pause.Subject, key string, do func(*limit.Limiter)) {
	for _, r := range p.u.live.Load().registries {
		l := r.Limit()
		if l.Name != of.Name || of != pause.OfLimit(l.Name, l.Scope, key) {
			continue
		}
		if m, own := r.Own(now, key); own {
			do(m)
		}
	}
}

// obeyPlain is obey for a subject whose key is stated nowhere else. A key that is a hash is held by the Book alone.
func (p *pausing) obeyPlain(now time.Duration, of pause.Subject) {
	if of.Plain() {
		p.obey(now, of, of.Key)
	}
}

// heard receives pauses and resumptions of other processes. It runs on a goroutine of the fleet.
func (p *pausing) heard(now time.Duration, paused, lifted []pause.Subject) {
	for _, of := range paused {
		p.obeyPlain(now, of)
		e := p.In(now, of)
		if e.Spans[e.Last()].By != p.u.options.Fleet.Client() {
			p.tell(p.u.options.Events.Paused, now, of, &e, ByFleet)
		}
	}
	p.resumed(now, lifted, ByFleet)
}

// resumed wakes the calls whose pauses were ended.
func (p *pausing) resumed(now time.Duration, lifted []pause.Subject, by string) {
	for _, of := range lifted {
		p.obeyPlain(now, of)
	}
	if len(lifted) > 0 {
		p.u.lines.Kick()
		p.u.sleepers.wakeLooking()
	}
	for _, of := range lifted {
		p.tell(p.u.options.Events.Resumed, now, of, &pause.Entry{}, by)
	}
}

// tell reports a pause that no call has reported.
func (p *pausing) tell(to func(PauseEvent), now time.Duration, of pause.Subject, e *pause.Entry, by string) {
	if to != nil {
		v := p.view(now, of, e)
		tell(to, PauseEvent{Subject: Subject{Upstream: p.u.name, Operation: v.Operation}, Limit: v.Limit, Key: v.Key, Pool: v.Pool, For: v.Left, By: by})
	}
}

// join shares the pauses with the fleet.
func (p *pausing) join() {
	f := p.u.options.Fleet
	p.records = pauses.Of(f, pauses.Config{
		Group: p.u.name, Book: &p.Book, Clock: p.u.options.Clock, Rand: p.u.options.Rand,
		Longest: p.longest, Heard: p.heard, Damaged: p.damaged,
	})
	p.leave = f.Attend(func(ctx context.Context) { _ = p.records.Run(ctx) }) // it returns why ctx ended
}

// damaged reports an invalid record in the store, which is ignored.
func (p *pausing) damaged(err error) { tell(p.u.options.Events.Damaged, DamageEvent{p.u.name, err}) }

// longest returns the longest pause for a reason.
func (p *pausing) longest(why pause.Reason) time.Duration {
	if why == pause.Rate {
		return p.u.live.Load().policy.MaxPause
	}
	return pause.Longest
}

// asks notifies the fleet that the store is asked for limits, so that it is asked for pauses too.
func (p *pausing) asks(now time.Duration) {
	if p.records != nil {
		p.records.Asks(now)
	}
}

// The first call of a process waits until the store has reported the fleet's pauses, as long as the call may wait for
// its turn, but within these bounds.
const (
	leastLook = 250 * time.Millisecond
	mostLook  = time.Second
)

// meet waits until the fleet's pauses are known, or the store has not responded in time. Calls then proceed without
// them, so that an unreachable store does not stop them. The error is the cause of ctx's end.
func (p *pausing) meet(ctx context.Context, patience time.Duration) error {
	if !p.u.options.Fleet.Running() {
		return nil
	}
	most := max(leastLook, min(mostLook, patience))
	wait, cancel := p.u.clock.WithTimeout(ctx, most, nil)
	defer cancel()
	p.OnMet(cancel)
	_ = p.u.clock.Sleep(wait, most)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.Met()
	return nil
}

// look returns the longest pauses, at most the given number, and how many there are.
func (p *pausing) look(now time.Duration, most int) (all []PauseView, n int) {
	held, n := p.All(now, most)
	for i := range held {
		all = append(all, p.view(now, held[i].Subject, &held[i].Entry))
	}
	return all, n
}

// view describes a pause.
func (p *pausing) view(now time.Duration, of pause.Subject, e *pause.Entry) PauseView {
	v := PauseView{Kind: of.Kind, Scope: of.Scope, Key: of.Key, Left: max(0, e.Until()-now), Open: e.Open(), Reason: e.Reason(now)}
	switch of.Kind {
	case pause.Limit, pause.Key:
		v.Limit = of.Name
	case pause.Pool:
		v.Pool = of.Name
	case pause.Operation:
		v.Operation = of.Name
	}
	s := &e.Spans[v.Reason]
	if v.By = s.By; v.Reason == pause.Quota && s.Known {
		v.ResetAt = p.u.clock.Wall(s.Until)
	}
	return v
}
