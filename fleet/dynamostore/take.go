package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/fleet"
)

// Take implements fleet.Store.
func (s *Store) Take(ctx context.Context, a *fleet.Ask) error {
	a.Granted, a.Grants, a.Delay = 0, a.Grants[:0], 0
	if err := a.Check(); err != nil {
		return err
	}
	s.takes.Add(1)
	w, err := s.start(ctx, "take", a.Group)
	all := a.Settle
	before, rest := apart(a)
	a.Settle = rest
	for _, one := range append(before, a) {
		if err == nil && !s.again(one) {
			if err = s.take(ctx, w, one); err == nil {
				s.keep(one)
			}
		}
	}
	a.Settle = all
	if err == nil && !a.Again && w.granted > 0 {
		a.Delay = time.Duration(w.granted - w.called)
	}
	return s.end(w, err)
}

func (s *Store) take(ctx context.Context, w *work, a *fleet.Ask) error {
	parts := s.parts(a)
	told, err := s.repeated(ctx, w, a, parts)
	if err != nil {
		return err
	}
	now := s.clock.read()
	a.Now = now.time()
	if !told && !fits(a, now) {
		if a.Fits(now.lo) != nil {
			a.Now = now.least()
		}
		return fleet.ErrWindow
	}
	a.Now = time.Time{} // the plans set it to their instant
	if len(parts) > 1 && !told {
		if err := s.refresh(ctx, w, a); err != nil {
			return err
		}
		s.scarcestFirst(a, parts)
	}
	granted, err := s.applyAll(ctx, w, a, parts)
	if err != nil {
		return err
	}
	a.Granted = granted
	a.Grants = slices.Grow(a.Grants[:0], len(a.Claims))[:len(a.Claims)]
	for _, p := range parts {
		for _, h := range p.limits {
			if h.claim != nil {
				a.Grants[h.index] = h.grant
			}
		}
	}
	return nil
}

// fits reports whether the present is within the windows of the ask.
func fits(a *fleet.Ask, now instant) bool { return a.Fits(now.label) == nil }

// repeated reports whether the ask was answered before, at least in part. It checks only asks that are marked as
// repeats.
func (s *Store) repeated(ctx context.Context, w *work, a *fleet.Ask, parts []*part) (told bool, err error) {
	if !a.Again {
		return false, nil
	}
	for _, p := range parts {
		if err := p.entry.lock(ctx); err != nil {
			return false, err
		}
		err := s.read(ctx, w, p.entry)
		p.entry.unlock()
		if err != nil {
			return false, err
		}
		p.entry.mu.Lock()
		t := s.seat(p.entry.item, a.Lane, 0)
		told = told || t.own && t.last.id == a.ID
		p.entry.mu.Unlock()
	}
	return told, nil
}

// scarcestFirst orders the items so that the one most likely to refuse is first.
func (s *Store) scarcestFirst(a *fleet.Ask, parts []*part) {
	bears := make(map[*part]int64)
	for _, p := range parts {
		p.entry.mu.Lock()
		l := s.plan(a, p, a.Copies)
		p.entry.mu.Unlock()
		bears[p] = l.copies
	}
	slices.SortStableFunc(parts, func(x, y *part) int { return int(max(-1, min(1, bears[x]-bears[y]))) })
}

// applyAll applies an ask to one item after the other. If one grants less than earlier ones, it returns their
// surplus and extra units.
func (s *Store) applyAll(ctx context.Context, w *work, a *fleet.Ask, parts []*part) (granted int64, err error) {
	granted = a.Copies
	for i, p := range parts {
		if err = s.apply(ctx, w, a, p, granted); err != nil {
			s.halfway(ctx, w, a, parts[:i])
			return 0, err
		}
		if p.claims > 0 {
			granted = min(granted, p.granted)
		}
	}
	s.undo(ctx, w, a, parts, granted)
	return granted, nil
}

// halfway ends an ask that failed after some items. It returns their grants. If that also fails, the ask is void.
func (s *Store) halfway(ctx context.Context, w *work, a *fleet.Ask, done []*part) {
	for _, p := range done {
		if p.told != "" {
			s.remembers(a.ID, p.seat.sent(p.entry.name))
		}
	}
	if ctx.Err() == nil && !s.undo(ctx, w, a, done, 0) {
		s.fails(a.ID, func(f *failure) { f.void = true })
	}
}

const (
	rounds    = 32
	calmAfter = 3 // lost rounds after which the call pauses for up to two round trips
)

var errLate = errors.New("the answer came too late to be used while the table's clock is not measured")

var errBusy = errors.New("other processes kept changing the item; use leases, or split the key")

// apply applies an ask to one item. It plans from the copy. If a condition fails, it updates the copy and plans
// again.
func (s *Store) apply(ctx context.Context, w *work, a *fleet.Ask, p *part, want int64) error {
	for round := range rounds {
		if round > calmAfter {
			if err := s.o.sleep(ctx, s.o.jitter(2*w.took)); err != nil {
				return err
			}
		}
		if !p.undo && s.ends(ctx, w.took) { // nobody would use the units of an update whose answer is too late
			return errBusy
		}
		if done, err := s.round(ctx, w, a, p, want); done || err != nil {
			return err
		}
	}
	return errBusy
}

// ends reports whether the context will probably have ended when an update is answered that takes as long as took.
func (s *Store) ends(ctx context.Context, took time.Duration) bool {
	until, ok := ctx.Deadline()
	return ok && took > 0 && until.Sub(s.o.now()) < took+took/4
}

// round makes one attempt. It holds the entry while it plans. Other calls wait for that, and for a response that
// they would also need.
func (s *Store) round(ctx context.Context, w *work, a *fleet.Ask, p *part, want int64) (done bool, err error) {
	e := p.entry
	if err := e.lock(ctx); err != nil {
		return false, err
	}
	held := true
	defer func() {
		if held {
			e.unlock()
		}
	}()
	if err := s.refresh(ctx, w, a); err != nil {
		return false, err
	}
	e.mu.Lock()
	if e.asOf < p.since { // a condition has failed since
		e.mu.Unlock()
		return false, s.read(ctx, w, e)
	}
	l := s.plan(a, p, want)
	next, turn := s.next(ctx, w, a, p, l, want)
	e.mu.Unlock()
	switch next {
	case toTidy:
		return false, s.tidy(ctx, w, p, l)
	case toRead:
		return false, s.read(ctx, w, e)
	case toTurn:
		held = false
		e.unlock()
		return false, s.o.sleep(ctx, turn)
	case isDone:
		return true, nil
	}
	if !l.u.strict {
		held = false
		e.unlock()
	}
	return s.send(ctx, w, a, p, l)
}

// The next step of a round after its plan.
const (
	toSend = iota
	toTidy
	toRead // the copy is too old for a refusal
	toTurn // calendar windows are changing
	isDone // there is no update to send
)

// next returns the next step for a plan, and completes the plan's work under the entry's mu, which the caller
// holds.
func (s *Store) next(ctx context.Context, w *work, a *fleet.Ask, p *part, l *plan, want int64) (next int, turn time.Duration) {
	if l.tidy {
		return toTidy, 0
	}
	e, done := p.entry, l.told != nil || l.u.empty()
	if e.asOf < w.arrived && (done || l.copies < want) {
		return toRead, 0
	}
	if turn = s.turn(ctx, p, l); turn > 0 {
		return toTurn, turn
	}
	if done {
		l.finish(a, p, e.item, 0)
		return isDone, 0
	}
	l.leaves(e)
	return toSend, 0
}

// turn returns how long to wait until calendar windows have certainly changed. An ask waits at most once. The wait
// is as long as the uncertainty of the store's time.
func (s *Store) turn(ctx context.Context, p *part, l *plan) time.Duration {
	d := micro(l.turn)
	until, ok := ctx.Deadline()
	if p.waited || d <= 0 || ok && until.Sub(s.o.now()) < 2*d {
		return 0
	}
	p.waited = true
	return d
}

// send sends a planned update. It returns false if its conditions do not hold.
func (s *Store) send(ctx context.Context, w *work, a *fleet.Ask, p *part, l *plan) (ok bool, err error) {
	e := p.entry
	was := l.seat.sent(e.name)
	var sentAt int64
	var out *dynamodb.UpdateItemOutput
	in := l.input(s.table, e.name)
	first := l.now.mono
	err = s.try(ctx, w, func() (err error) {
		sentAt = s.clock.mono()
		out, err = s.api.UpdateItem(ctx, in, s.options)
		return err
	})
	received := s.clock.mono()
	if l.leans() && (err == nil && l.late(s.clock.read()) || err != nil && (w.again || notAsExpected(err) == nil)) {
		p.void = true
		s.fails(a.ID, func(f *failure) { f.void = true })
		err = cmp.Or(err, errLate)
	}
	w.took = time.Duration(received - sentAt)
	e.mu.Lock()
	defer e.mu.Unlock()
	l.lands(e, err == nil)
	failed := notAsExpected(err)
	if w.granted == 0 && (failed == nil || w.again) {
		w.granted = max(1, first)
	}
	if failed != nil {
		w.Failed++
		if w.again && p.was == nil {
			p.was = &was
		}
		if p.since = sentAt; len(failed.Item) > 0 { // emulators do not return the item
			e.replace(failed.Item, sentAt, received)
		}
		return false, nil
	}
	if err != nil {
		if !p.undo {
			s.remembers(a.ID, *cmp.Or(p.was, &was))
		}
		return false, err
	}
	if l.whole {
		e.replace(out.Attributes, sentAt, received)
		for _, x := range l.shares {
			if c, ok := x.cell.(*bucketCell); ok && c.fresh {
				e.wrote(c.name("b"), first)
			}
		}
	} else {
		e.change(out.Attributes, l.u.removed, sentAt, received)
	}
	p.seat, p.told = l.seat, l.answer.String()
	e.sits(l.seat.name, p.told, received)
	l.finish(a, p, e.item, (received-sentAt)/1000+1)
	return true, nil
}

// leaves and lands track updates in progress. A seat is reserved before the update arrives, so that other calls of
// this process use another.
func (l *plan) leaves(e *entry) {
	for _, x := range l.shares {
		e.flies(x.at, x.ahead)
	}
	e.seats[l.seat.name]++
	if l.seat.free {
		e.item[l.seat.name] = l.answer.String()
	}
}

func (l *plan) lands(e *entry, ok bool) {
	for _, x := range l.shares {
		e.flies(x.at, -x.ahead)
		if ok && x.taken+x.extra > 0 {
			e.used[x.at] = true
		}
	}
	if e.seats[l.seat.name]--; e.seats[l.seat.name] == 0 {
		delete(e.seats, l.seat.name)
	}
	if !ok && l.seat.free && e.item[l.seat.name] == l.answer.String() {
		delete(e.item, l.seat.name)
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (l *plan) input(table, name string) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		TableName: &table, Key: keyOf(name),
		UpdateExpression:                    aws.String(l.u.expression()),
		ExpressionAttributeValues:           l.u.values,
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if l.u.when.Len() > 0 {
		in.ConditionExpression = aws.String(l.u.when.String())
	}
	if l.u.life {
		in.ExpressionAttributeNames = map[string]string{"#ttl": "ttl"}
	}
	if l.whole {
		in.ReturnValues = types.ReturnValueAllNew
	}
	return in
}

func (s *Store) read(ctx context.Context, w *work, e *entry) error {
	var sentAt int64
	var out *dynamodb.GetItemOutput
	in := &dynamodb.GetItemInput{TableName: &s.table, Key: keyOf(e.name), ConsistentRead: aws.Bool(true)}
	err := s.try(ctx, w, func() (err error) {
		sentAt = s.clock.mono()
		out, err = s.api.GetItem(ctx, in, s.options)
		return err
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replace(out.Item, sentAt, s.clock.mono())
	return nil
}

// undo returns the units of items that granted more than the other items. It reports whether that succeeded.
// Otherwise the units are lost until they expire, or return later, so a repeat of the ask must not be granted them.
func (s *Store) undo(ctx context.Context, w *work, a *fleet.Ask, parts []*part, granted int64) (ok bool) {
	ok = true
	for _, p := range parts {
		if p.granted <= granted || p.told == "" {
			continue
		}
		back := &part{entry: p.entry, since: longAgo, seat: p.seat, told: p.told, granted: granted, undo: true}
		for _, h := range p.limits {
			if h.claim == nil {
				continue
			}
			n := (p.granted-granted)*h.claim.Cost + h.extra
			h.grant.Extra = 0
			back.limits = append(back.limits, &share{rule: h.rule, at: h.at, windows: h.windows, of: h, settle: []*fleet.Settlement{
				{Rule: h.rule, Key: h.claim.Key, Back: n, Mark: h.grant.Mark},
			}})
		}
		ok = s.apply(ctx, w, a, back, 0) == nil && ok
	}
	return ok
}
