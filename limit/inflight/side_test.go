package inflight

import (
	"math"
	"time"
)

// A side is a sidecar of the worlds: the breaker, the bound and waiting calls. Apart from the bound it does what the
// root package does; see engine_test.go.
type side struct {
	s                      *sim
	br                     breaker
	bound                  *Bound
	waiting, qh            int
	q                      []int32
	empty                  float64
	pumpAt, budget, earned float64
}

// A policy configures a sidecar.
type policy struct {
	config   Config
	attempts int
	noKeep   bool // a caller that leaves ends the attempt
}

func newSide(s *sim) *side {
	return &side{s: s, budget: 1, br: breaker{s: s}, bound: New(s.p.config)}
}

func (d *side) now() time.Duration { return at(d.s.now) }

// at converts a moment of the simulation to an instant: a year after the beginning.
func at(seconds float64) time.Duration {
	return 365*24*time.Hour + time.Duration(math.Round(seconds*1e9))
}

func (d *side) waited() time.Duration {
	if d.waiting == 0 {
		return 0
	}
	return time.Duration((d.s.now - d.empty) * 1e9)
}

func (d *side) admit(c int32) {
	s, k := d.s, &d.s.calls[c]
	if k.att == 0 {
		d.budget = min(10, d.budget+0.1+s.now-d.earned) // 10% of calls and 1/s
		d.earned = s.now
	}
	ok, probe := d.br.admit()
	if !ok {
		s.ends(c, 2)
		return
	}
	k.probe = probe
	if probe {
		d.send(c, d.bound.Force(d.now()))
		return
	}
	if d.waiting == 0 {
		if slot, ok := d.bound.Take(d.now()); ok {
			d.send(c, slot)
			return
		}
		d.empty = s.now
	}
	w := d.bound.Wait(0, d.waited(), false).Seconds()
	k.state = 1
	d.waiting++
	d.q = append(d.q, c)
	s.h.push(event{at: s.now + w, kind: evQueue, a: c})
	d.pump()
}

func (d *side) pump() {
	for d.waiting > 0 {
		newest := d.bound.Stands(0, d.waited(), false)
		c, i := d.next(newest)
		if i < 0 {
			break
		}
		slot, ok := d.bound.Take(d.now())
		if !ok {
			break
		}
		if newest {
			d.q = d.q[:i]
		} else {
			d.qh = i + 1
		}
		d.waiting--
		d.send(c, slot)
	}
	if d.waiting == 0 {
		d.q, d.qh = d.q[:0], 0
	} else if next := d.bound.Next(d.now()); d.pumpAt <= d.s.now {
		d.pumpAt = (next - at(0)).Seconds()
		d.s.h.push(event{at: d.pumpAt, kind: evPump, a: d.s.calls[d.q[len(d.q)-1]].side})
	}
}

func (d *side) next(newest bool) (int32, int) {
	if newest {
		for i := len(d.q) - 1; i >= d.qh; i-- {
			if d.s.calls[d.q[i]].state == 1 {
				return d.q[i], i
			}
			d.q = d.q[:i]
		}
		return 0, -1
	}
	for i := d.qh; i < len(d.q); i++ {
		if d.s.calls[d.q[i]].state == 1 {
			return d.q[i], i
		}
		d.qh = i + 1
	}
	return 0, -1
}

func (d *side) send(c int32, slot Slot) {
	s, k := d.s, &d.s.calls[c]
	k.state, k.sent, k.slot = 2, s.now, slot
	k.att++
	s.h.push(event{at: s.now + s.w.headers, kind: evTimeout, a: c, b: k.gen})
	s.deliver(c)
}

// sentinel gets the response of a call that was kept.
func (d *side) sentinel(j *job) {
	d.br.wakes()
	d.bound.Heard(d.now(), j.slot, Answer{Sent: at(j.sent), Failed: j.failed, Waited: d.waited()})
	d.pump()
}

func (d *side) answered(c int32, ok bool) {
	s, k := d.s, &d.s.calls[c]
	d.bound.Answered(d.now(), k.slot, Answer{Sent: at(k.sent), Failed: !ok, Waited: d.waited()})
	d.br.report(ok, k.probe)
	k.gen++
	if ok {
		s.ends(c, 0)
	} else {
		d.failed(c)
	}
	d.pump()
}

func (d *side) failed(c int32) {
	s, k := d.s, &d.s.calls[c]
	if int(k.att) < s.p.attempts && d.budget >= 1 {
		d.budget--
		k.state = 0
		s.h.push(event{at: s.now + s.r.Float64()*0.1*math.Exp2(float64(k.att-1)), kind: evRetry, a: c})
		return
	}
	s.ends(c, 1)
}

func (d *side) timedOut(c int32) {
	k := &d.s.calls[c]
	d.abandon(c)
	d.br.report(false, k.probe)
	k.gen++
	d.failed(c)
	d.pump()
}

func (d *side) left(c int32) {
	s, k := d.s, &d.s.calls[c]
	switch k.state {
	case 1:
		d.waiting--
		d.bound.GaveUp(d.now())
	case 2:
		d.abandon(c)
		if k.probe {
			d.br.probing = false
		}
	}
	s.ends(c, 1)
	d.pump()
}

// abandon gives up the upstream's call, or keeps it for its response.
func (d *side) abandon(c int32) {
	s, k := d.s, &d.s.calls[c]
	j := &s.jobs[k.job]
	j.slot = k.slot
	if s.p.noKeep || d.bound.Later(k.slot) {
		j.gone = true
		d.bound.Left(d.now(), k.slot, nil)
		return
	}
	j.kept = true
	job := k.job
	d.bound.Left(d.now(), k.slot, func() { s.jobs[job].kept, s.jobs[job].gone = false, true })
}

// waitEnds ends a call's wait for a slot. During a hasty drain the wait may be extended.
func (d *side) waitEnds(c int32) {
	s, k := d.s, &d.s.calls[c]
	if t := d.bound.Longer(d.now(), at(k.born), d.waiting, false); t > d.now() {
		s.h.push(event{at: (t - at(0)).Seconds(), kind: evQueue, a: c})
		return
	}
	s.ends(c, 2)
	d.waiting--
	d.pump()
}

// A breaker of the worlds: half of at least 20 calls that ended within 10 s; open for 1 s, 50% longer after each
// failed probe, up to 30 s; two good probes.
type breaker struct {
	s           *sim
	ok, bad     [10]float64
	at          [10]int64
	state, good int // state: 0 closed, 1 open, 2 half open
	till, hold  float64
	probeAt     float64
	probing     bool
}

func (b *breaker) wakes() {
	if b.state == 1 {
		b.till = b.s.now
	}
}

func (b *breaker) admit() (ok, probe bool) {
	now := b.s.now
	if b.state == 1 && now >= b.till {
		b.state, b.good, b.probing = 2, 0, false
	}
	switch b.state {
	case 1:
		return false, false
	case 2:
		if b.probing && now-b.probeAt < 30 {
			return false, false
		}
		b.probing, b.probeAt = true, now
		return true, true
	}
	return true, false
}

func (b *breaker) report(ok, probe bool) {
	switch {
	case b.state == 1, b.state == 2 && !probe:
	case b.state == 2:
		b.probed(ok)
	default:
		b.counts(ok)
	}
}

func (b *breaker) probed(ok bool) {
	b.probing = false
	if !ok {
		b.hold = min(30, b.hold*1.5)
		b.state, b.till = 1, b.s.now+b.hold
	} else if b.good++; b.good >= 2 {
		b.state = 0
		b.ok, b.bad = [10]float64{}, [10]float64{}
	}
}

func (b *breaker) counts(ok bool) {
	t := int64(b.s.now)
	i := t % 10
	if b.at[i] != t {
		b.at[i], b.ok[i], b.bad[i] = t, 0, 0
	}
	if ok {
		b.ok[i]++
		return
	}
	b.bad[i]++
	var g, f float64
	for i := range b.ok {
		if t-b.at[i] < 10 {
			g, f = g+b.ok[i], f+b.bad[i]
		}
	}
	if g+f >= 20 && f >= 0.5*(g+f) {
		b.hold, b.state, b.till = 1, 1, b.s.now+1
	}
}
