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
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
)

// Pause stops all calls of a subject by hand, for so long or, if that is 0, until Resume;
// for pause.Longest at most. It holds in the whole fleet, or in this process alone if here
// is set. The error says which subjects there are.
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

// Resume lifts the pauses of a subject before their time, whoever asked for them, and
// those of all that it stands for: of a limit those of its keys, too, and of the upstream
// all. It says how many there were. Others of the fleet hear of it, unless here is set:
// then it is this process alone that goes on. The error says which subjects there are.
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

// knows says what is wrong with a subject: a pause of what there is not would hold nobody.
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

// knowsKey says whether a key of a subject is one that the limit tells apart.
func knowsKey(l *limit.Limit, of pause.Subject) error {
	switch {
	case of.Kind == pause.Limit || of.Scope == l.Scope && l.Scope != "":
		return nil
	case l.Scope == "":
		return fmt.Errorf("key %q: limit %s has no keys; leave key out", of.Key, l.Name)
	}
	return fmt.Errorf("key %q: limit %s has the scope %s, not %s", of.Key, l.Name, l.Scope, of.Scope)
}

// listed are names as a person reads them.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// A PauseView is a pause that is in force, and whom it holds: the calls of a pool, of an
// operation, those that are charged to a limit, under one key if Scope is not "", or all
// calls.
type PauseView struct {
	Kind      pause.Kind
	Limit     string
	Scope     string
	Key       string
	Pool      string
	Operation string
	Left      time.Duration
	Open      bool // until a person says that calls go on; Left is the longest it can be
	Reason    pause.Reason
	ResetAt   time.Time // of a quota, if the upstream said when it is there again
	By        string    // the process that was told first; "" without a fleet
}

// Subject is whom it holds.
func (v *PauseView) Subject() pause.Subject {
	return pause.Subject{Kind: v.Kind, Name: cmp.Or(v.Limit, v.Pool, v.Operation), Scope: v.Scope, Key: v.Key}
}

// pausing is what an upstream knows of its pauses: the book says whom they hold until when, whether
// a hint has asked for them, a person or another process of the fleet. A call reads the book at
// each decision, which costs one atomic load while nobody is paused.
//
// In a fleet a loop beside the calls writes what is new to the store and reads what others have
// written (package fleet/pauses). A call never waits for it, but for the first of a process.
type pausing struct {
	pause.Book
	u       *Upstream
	records *pauses.Pauses // shares them; nil if there is no fleet
	leave   func()         // takes them out of the fleet; nil likewise
	obeying sync.Mutex     // see obey
	hints   sharedHints
}

// pause notes a pause until s.Until: of two of one subject the longer one is in force. It has the limiters that the subject
// names stand still, and lets the fleet know.
func (p *pausing) pause(now time.Duration, of pause.Subject, key string, why pause.Reason, s pause.Span) {
	if !p.Add(now, of, why, s) {
		p.limiters(now, of, key, func(m *limit.Limiter) { m.Pause(now, s.Until) })
		return
	}
	p.obey(now, of, key)
	p.share()
}

// share lets the fleet know that something has changed.
func (p *pausing) share() {
	if p.records != nil {
		p.records.Changed()
	}
}

// obey has the limiter of a subject, if it is that of one key, stand still as long as
// the book says. It keeps the places of those who wait, no more: who may go is the book's
// to say, also where a limiter was made since and knows of no pause. p.obeying is held for
// the two to agree: nothing that waits or calls out happens meanwhile.
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

// limiters are those that only calls of the subject take from. Keys for which there was
// no room have one together.
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

// obeyPlain is obey for a subject of which nobody here has said the key. One whose key is
// a hash is held by the book alone.
func (p *pausing) obeyPlain(now time.Duration, of pause.Subject) {
	if of.Plain() {
		p.obey(now, of, of.Key)
	}
}

// heard is told on a goroutine of the fleet what others say.
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

// resumed lets those go whose pauses were lifted.
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

// tell tells of a pause that no call was told of.
func (p *pausing) tell(to func(PauseEvent), now time.Duration, of pause.Subject, e *pause.Entry, by string) {
	if to != nil {
		v := p.view(now, of, e)
		tell(to, PauseEvent{Subject: Subject{Upstream: p.u.name, Operation: v.Operation}, Limit: v.Limit, Key: v.Key, Pool: v.Pool, For: v.Left, By: by})
	}
}

// join makes the pauses those of the fleet.
func (p *pausing) join() {
	f := p.u.options.Fleet
	p.records = pauses.Of(f, pauses.Config{
		Group: p.u.name, Book: &p.Book, Clock: p.u.options.Clock, Rand: p.u.options.Rand,
		Longest: p.longest, Heard: p.heard, Damaged: p.damaged,
	})
	p.leave = f.Attend(func(ctx context.Context) { _ = p.records.Run(ctx) }) // it returns why ctx ended
}

// damaged tells of a record of the store that is not believed.
func (p *pausing) damaged(err error) { tell(p.u.options.Events.Damaged, DamageEvent{p.u.name, err}) }

// longest is the longest pause for a reason, whoever asks for it.
func (p *pausing) longest(why pause.Reason) time.Duration {
	if why == pause.Rate {
		return p.u.live.Load().policy.MaxPause
	}
	return pause.Longest
}

// asks tells the fleet that the store is asked for limits: then it is for pauses, too.
func (p *pausing) asks(now time.Duration) {
	if p.records != nil {
		p.records.Asks(now)
	}
}

// A call of a process that has just begun waits so long to hear what the fleet has paused,
// if the store answers no sooner: as long as it may wait for its turn, within these.
const (
	leastLook = 250 * time.Millisecond
	mostLook  = time.Second
)

// meet waits until it is known what the fleet has paused, or the store did not say soon: then
// calls go on without, since a store that is away must not keep them. The error is the cause of
// ctx's end.
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

// look shows those that last longest, so many at most, and says how many there are.
func (p *pausing) look(now time.Duration, most int) (all []PauseView, n int) {
	held, n := p.All(now, most)
	for i := range held {
		all = append(all, p.view(now, held[i].Subject, &held[i].Entry))
	}
	return all, n
}

// view is what a pause looks like.
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
