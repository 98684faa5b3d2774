package sim_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sim"
)

// An audit has all grants of a store without those that came back. It checks that a limit holds whenever, within the
// validity of its grant, each unit is used.
type audit struct {
	executed map[uint64]bool // requests
	grants   map[lotKey][]*grant
}

type grant struct {
	at, until time.Duration
	n         int64
	by        int // the process
	mark      fleet.Mark
}

func newAudit() *audit {
	return &audit{make(map[uint64]bool), make(map[lotKey][]*grant)}
}

// takes notes a request that the store has executed.
func (d *audit) takes(now time.Duration, m *member, a *fleet.Ask) {
	if d.executed[a.ID] {
		return
	}
	d.executed[a.ID] = true
	for i := range a.Settle {
		if s := &a.Settle[i]; s.Back > 0 && !strings.HasSuffix(s.Rule.Name, " held") {
			d.returns(m, s)
		}
	}
	for i := range a.Claims {
		c := &a.Claims[i]
		n := a.Granted*c.Cost + a.Grants[i].Extra
		if n == 0 || strings.HasSuffix(c.Rule.Name, " held") {
			continue
		}
		k := lotKey{int(c.Rule.Name[1] - '0'), c.Key}
		until := now + time.Duration(c.Rule.Hold)*time.Microsecond
		d.grants[k] = append(d.grants[k], &grant{now, until, n, m.id, a.Grants[i].Mark})
	}
}

// returns removes units from the grant with the mark, and the rest from later grants of the process: it returns units
// of several grants together as though all were of the first.
func (d *audit) returns(m *member, s *fleet.Settlement) {
	k, n, found := lotKey{int(s.Rule.Name[1] - '0'), s.Key}, s.Back, false
	for _, g := range d.grants[k] {
		if g.by == m.id && (found || g.mark.At >= s.Mark.At) {
			found = true
			back := min(n, g.n)
			g.n, n = g.n-back, n-back
		}
	}
}

// check returns by how many units a limit may be exceeded, and from when. lonely are units that were used without a
// grant.
func (d *audit) check(c *sim.Clock, l *limit.Limit, k lotKey, lonely []used) (worst int64, where string) {
	all := slices.Clone(d.grants[k])
	for _, u := range lonely {
		all = append(all, &grant{at: u.at, until: u.at, n: u.n})
	}
	all = slices.DeleteFunc(all, func(g *grant) bool { return g.n == 0 })
	slices.SortStableFunc(all, func(a, b *grant) int { return int(a.at - b.at) })
	if l.Shape == limit.Calendar {
		counts := make(map[time.Time]int64)
		for _, g := range all {
			start := l.Windows(c.Wall(g.at)).Start
			if counts[start] += g.n; counts[start]-l.Amount > worst {
				worst, where = counts[start]-l.Amount, fmt.Sprintf("in the window from %v", start)
			}
		}
		return worst, where
	}
	for i, first := range all {
		var sum int64
		for _, g := range all[max(0, i-200):] {
			if g.until < first.until {
				continue
			}
			sum += g.n
			most := float64(l.Full()) + l.PerSecond()*max(0, g.at-first.until).Seconds()
			if over := int64(math.Ceil(float64(sum) - most - 0.01)); over > worst {
				worst, where = over, fmt.Sprintf("from %v to %v", first.until, g.at)
			}
		}
	}
	return worst, where
}
