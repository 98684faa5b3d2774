package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// A taken counts the units that the store has granted to this process of a limit with limit.ColdShare, minus
// returned units. It also counts while the store knows the usage. So if the store loses its data, the process
// gets no more than the rest of its share of the window. It is guarded by lease.mu.
type taken struct {
	start int64 // for shape Calendar: the start of the window, in microseconds of the store's clock
	units int64 // for shape Calendar: units of that window

	counts counts // for shape Rolling

	shares bool          // for shape Bucket: the share is in use
	rest   float64       // available units of the share; negative if more were taken
	at     time.Duration // the instant of rest
}

// coldRoom returns how many units of a claim the store may grant although it lost the previous usage:
// Claim.Cold.
func (p *lease) coldRoom(now time.Duration, s *spec, c *Claim) int64 {
	switch {
	case s.limit.Cold == limit.ColdRefuse || p.passing || p.beginning():
		return 0
	case s.limit.Cold == limit.ColdFull:
		return ColdFull
	}
	crowd := p.group.coldCrowd(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.taken
	if crowd == 0 {
		t.shares = false
		return 0
	}
	switch s.rule.Shape {
	case limit.Calendar:
		n := s.rule.Amount / crowd
		if t.start == c.Start.UnixMicro() {
			n -= t.units
		}
		return max(0, n)
	case limit.Rolling:
		t.counts.drop(now)
		return max(0, s.rule.Amount/crowd-t.counts.sum)
	}
	return max(0, int64(t.tokens(now, s, crowd)))
}

// coldCrowd returns the number of processes among which a limit is divided while the store does not know the
// usage. It is 0 while this process must not use a share, because the store knows the usage, or because it may
// not have counted newer processes yet.
func (g *Group) coldCrowd(now time.Duration) int64 {
	g.own.Lock()
	defer g.own.Unlock()
	b, s := &g.beating, &g.standing
	if b.cold.since == 0 || !s.met || now < s.began+trial*time.Microsecond {
		return 0
	}
	return b.cold.crowd
}

// tokens returns the available units of a bucket's share. The share begins full and fills at its part of the
// rate.
func (t *taken) tokens(now time.Duration, s *spec, crowd int64) float64 {
	top := float64(s.burst()) / float64(crowd)
	if !t.shares {
		t.shares, t.rest, t.at = true, top, now
	}
	t.rest = min(top, t.rest+s.limit.PerSecond()/float64(crowd)*(now-t.at).Seconds())
	t.at = now
	return t.rest
}

// tookShare counts units that the store granted. start is the start of their calendar window.
func (p *lease) tookShare(now time.Duration, s *spec, start, n int64) {
	if s.limit.Cold != limit.ColdShare {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch t := &p.taken; s.rule.Shape {
	case limit.Calendar:
		if t.start != start {
			t.start, t.units = start, 0
		}
		t.units += n
	case limit.Rolling:
		least, most := s.stay()
		t.counts.drop(now)
		t.counts.add(now+least, now+most, n, s.grain())
	default:
		t.rest -= float64(n)
	}
}

// settleShare subtracts returned units and adds units that were used without a grant. lease.mu is held.
func (p *lease) settleShare(now time.Duration, s *spec, d *Settlement) {
	if s.limit.Cold != limit.ColdShare {
		return
	}
	switch t := &p.taken; s.rule.Shape {
	case limit.Calendar:
		if d.Back > 0 && d.Mark.At == t.start {
			t.units = max(0, t.units-d.Back)
		}
		t.units += d.Owe
	case limit.Rolling:
		least, most := s.stay()
		begin := time.Duration(d.Mark.At*d.Mark.Level*1000 - p.group.fleet.offset.Load())
		t.counts.removeOnce(begin+least, begin+most+time.Second, d.Back)
		if d.Owe > 0 {
			t.counts.add(now+least, now+most, d.Owe, s.grain())
		}
	default:
		t.rest += float64(d.Back - d.Owe)
	}
}

// removeOnce removes n units from the newest spells that may end between two instants.
func (t *counts) removeOnce(from, to time.Duration, n int64) {
	for i := len(t.all) - 1; i >= 0 && n > 0; i-- {
		if c := &t.all[i]; c.low <= to && c.high >= from {
			k := min(n, c.n)
			c.n -= k
			t.sum, n = t.sum-k, n-k
		}
	}
}

// keepsShare reports whether the lease must be kept because it counts units of a share.
func (p *lease) keepsShare(now time.Duration) bool {
	if p.spec().limit.Cold != limit.ColdShare || p.group.warm.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.taken
	t.counts.drop(now)
	return t.units > 0 || t.counts.sum > 0 || t.rest < 0
}
