package sim_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A ledger has what the store has granted to a process, and checks that each call is covered by a grant that is still
// valid, or by the process's part.
type ledger struct {
	first     map[uint64]time.Duration // when each request was first sent
	lots      map[lotKey][]lot
	uncovered map[lotKey][]used
	part      int64         // the largest that the process has held
	holds     int64         // the part of the latest response
	latest    time.Duration // when it last used its part; 0 if not since the latest response
	seq       int64         // of its latest heartbeat with a response
	heard     time.Duration
	alone     bool             // it told the store with its last heartbeat that it uses its part
	spent     map[lotKey]int64 // used without a grant since it heard from the store
	problems  []string
}

type lotKey struct {
	limit int
	key   string
}

// A lot is units of one grant.
type lot struct {
	n     int64
	until time.Duration
}

func newLedger() *ledger {
	return &ledger{first: make(map[uint64]time.Duration), lots: make(map[lotKey][]lot), uncovered: make(map[lotKey][]used), spent: make(map[lotKey]int64)}
}

// sends notes a request.
func (l *ledger) sends(now time.Duration, a *fleet.Ask) {
	if _, ok := l.first[a.ID]; !ok {
		l.first[a.ID] = now
	}
}

// receives notes a response that has arrived.
func (l *ledger) receives(f *faulty, a *fleet.Ask) {
	for i := range a.Claims {
		c := &a.Claims[i]
		n := a.Granted*c.Cost + a.Grants[i].Extra
		if n == 0 || strings.HasSuffix(c.Rule.Name, " held") {
			continue
		}
		until := forever
		switch hold := time.Duration(c.Rule.Hold) * time.Microsecond; {
		case c.Rule.Shape == limit.Calendar:
			until = c.End.Sub(f.world.Clock().Wall(0))
			if !a.Now.Before(c.End) {
				until = c.Next.Sub(f.world.Clock().Wall(0))
			}
		case hold > 0:
			until = l.first[a.ID] + hold + hold/1000 + time.Millisecond
		}
		k := lotKey{int(c.Rule.Name[1] - '0'), c.Key}
		l.lots[k] = append(l.lots[k], lot{n, until})
	}
}

// uses takes the units that a call reserves from the grants. Units that it returns may have come from the part, or
// from the standby of a calendar limit, and then other calls of the process use them.
func (l *ledger) uses(r *limit.Limit, u used, reserves int64) {
	shape := r.Shape
	returns := reserves - u.n
	if shape != limit.Calendar {
		u.n = reserves
	}
	k := lotKey{u.limit, u.key}
	lots := slices.DeleteFunc(l.lots[k], func(g lot) bool { return g.n == 0 || g.until < u.at })
	slices.SortStableFunc(lots, func(a, b lot) int { return cmp.Compare(a.until, b.until) })
	for i := range lots {
		n := min(lots[i].n, u.n)
		lots[i].n -= n
		u.n -= n
	}
	l.lots[k] = lots
	if shape != limit.Calendar {
		u.n -= returns
	}
	if u.n > 0 {
		l.uncovered[k] = append(l.uncovered[k], u)
		l.lonely(r, k, u)
	}
}

// hears notes the response to a heartbeat.
func (l *ledger) hears(now time.Duration, b *fleet.Beat, s *fleet.Standing) {
	if s.No == 0 || b.Seq <= l.seq { // a copy of one that had its response
		return
	}
	l.seq, l.part, l.heard, l.alone = b.Seq, max(l.part, s.Part), now, b.Alone
	l.holds, l.latest = s.Part, 0
	clear(l.spent)
}

// lonely checks units that come from the part. They begin to accrue only when the store has been silent.
func (l *ledger) lonely(r *limit.Limit, k lotKey, u used) {
	if r.Shape != limit.Calendar {
		l.latest = u.at
	}
	if l.alone || l.heard > u.at || r.Shape == limit.Calendar {
		return
	}
	l.spent[k] += u.n
	switch silent := u.at - l.heard; {
	case silent < 400*time.Millisecond:
		l.problems = append(l.problems, fmt.Sprintf("used its part of %v %v after a response, at %v", r, silent, u.at))
	case r.Shape == limit.Bucket && float64(l.spent[k]) > 1+silent.Seconds()*r.PerSecond()*float64(l.part)/fleet.Whole:
		l.problems = append(l.problems, fmt.Sprintf("used %d of its part of %v in %v, until %v", l.spent[k], r, silent, u.at))
	}
}

// check returns what the process used without a grant beyond its part.
func (l *ledger) check(f *faulty, changed bool) (problems []string) {
	if !changed {
		problems = l.problems
	}
	for k, all := range l.uncovered {
		r := f.limits[k.limit]
		if changed && k.limit == 0 {
			continue
		}
		part := r
		of := func(n int64) int64 { return (n*l.part + fleet.Whole - 1) / fleet.Whole }
		switch r.Shape {
		case limit.Bucket:
			part.Rate = bucket.Rate{Amount: max(1, r.Amount*l.part), Per: r.Per * fleet.Whole, Burst: max(1, of(r.Full()))}
		default:
			part.Amount = of(r.Amount)
		}
		slices.SortStableFunc(all, func(a, b used) int { return cmp.Compare(a.at, b.at) })
		if r.Shape == limit.Calendar {
			problems = append(problems, fmt.Sprintf("used %d of %v without a grant, first at %v", len(all), r, all[0].at))
		} else if over := overLimit(part, all); over > 0 {
			problems = append(problems, fmt.Sprintf("used %d more than its part %d of %v, in %d calls from %v", over, l.part, r, len(all), all[0].at))
		}
	}
	return problems
}

// inUse returns the parts that processes have used within a tenth of a second.
func (f *faulty) inUse() (n int64) {
	for _, m := range f.members {
		if at := m.ledger.latest; at > 0 && at > f.world.Now()-time.Second/10 && at < m.ledger.heard+f.options.Outage && !m.dead {
			n += m.ledger.holds
		}
	}
	return n
}
