package inflight

import (
	"math"
	"math/rand/v2"
)

// A world is the part of a simulation that does not depend on the policy.
type world struct {
	dist, order         string     // distribution of service: const, exp, logn (p99 = 5 x median); order: fifo, lifo, share
	cap, mean, load     float64    // calls/s that the upstream can serve; seconds of service (workers = cap*mean); offered calls/s
	bound, sides, batch int        // of the upstream's queue (0: none); sidecars; callers that come together
	mix                 [2]float64 // share of calls that take so many seconds (plus or minus a fifth); the rest as dist
	regular             bool       // arrivals are evenly spaced
	honour, own         bool       // queued work whose caller left is dropped; callers try 3 times, full jitter from 100 ms
	lose                bool       // calls sent during the stall never get a response
	leavers             [2]float64 // share of callers, and after how many seconds they leave
	errs, patience      float64    // share of errors; of callers, in seconds
	headers             float64    // seconds until an attempt without a response has failed
	stall               [2]float64 // from, to
	down, slow, crowd   [3]float64 // from, to, and: share of workers left; factor of service times; factor of load
	stream, warm, end   float64    // seconds that a worker continues after the headers; measured from; measured to
}

type call struct {
	born, sent           float64
	user, side, gen, job int32
	state, att           uint8 // state: 0 new, 1 waits, 2 in flight, 3 over
	probe                bool
	slot                 Slot
}
type user struct {
	born         float64
	tries        uint8
	over, fickle bool
}
type job struct {
	call, gen          int32
	work, sent         float64
	gone, failed, kept bool
	slot               Slot
}

type sim struct {
	w             world
	p             policy
	r             *rand.Rand
	now           float64
	h             heap
	calls         []call
	users         []user
	jobs          []job
	sides         []*side
	workers, busy int // of the upstream, like the fields below
	q             []int32
	qh            int
	v, vAt        float64 // processor sharing: virtual time, jobs by virtual end
	ph            heap
	pgen          int32

	sent, good, refused []float64 // per 0.1 s of birth
	arrivals            float64
}

func newSim(w world, p policy, seed uint64) *sim {
	s := &sim{w: w, p: p, r: rand.New(rand.NewPCG(seed, 77))}
	n := int(w.end*10) + 2
	s.sent, s.good, s.refused = make([]float64, n), make([]float64, n), make([]float64, n)
	s.workers = max(1, int(math.Round(w.cap*(w.mean*(1-w.mix[0])+w.mix[0]*w.mix[1]+w.stream))))
	for range max(1, w.sides) {
		s.sides = append(s.sides, newSide(s))
	}
	return s
}

// gap returns the time between arrivals, with mean 1.
func (s *sim) gap() float64 {
	if s.w.regular {
		return 1
	}
	return s.r.ExpFloat64()
}

func (s *sim) draw() float64 {
	m := s.w.mean * s.factor(s.w.slow)
	if s.w.mix[0] > 0 && s.r.Float64() < s.w.mix[0] {
		return s.w.mix[1] * math.Exp(0.2*s.r.NormFloat64())
	}
	switch s.w.dist {
	case "exp":
		return m * s.r.ExpFloat64()
	case "logn":
		const sg = 0.692 // ln 5 / 2.326
		return m * math.Exp(sg*s.r.NormFloat64()-sg*sg/2)
	}
	return m
}

// factor returns x[2] between x[0] and x[1], otherwise 1.
func (s *sim) factor(x [3]float64) float64 {
	if s.now >= x[0] && s.now < x[1] {
		return x[2]
	}
	return 1
}

// later returns when work of d seconds that starts now ends, without the stall.
func (s *sim) later(d float64) float64 {
	a, b := s.w.stall[0], s.w.stall[1]
	end := s.now + d
	if b > a && s.now < b && end > a {
		end += b - max(a, s.now)
	}
	return end
}

func (s *sim) active() int {
	return max(1, int(float64(s.workers)*s.factor(s.w.down)+0.5))
}

func (s *sim) deliver(c int32) {
	s.arrivals++
	k := &s.calls[c]
	j := int32(len(s.jobs))
	k.job = j
	s.jobs = append(s.jobs, job{call: c, gen: k.gen, work: s.draw(), sent: s.now, failed: s.r.Float64() < s.w.errs})
	if s.w.lose && s.now >= s.w.stall[0] && s.now < s.w.stall[1] {
		return
	}
	if s.w.order == "share" {
		s.advance()
		s.ph.push(event{at: s.v + s.jobs[j].work, a: j})
		s.reshare()
		return
	}
	if s.w.bound > 0 && len(s.q)-s.qh >= s.w.bound {
		s.jobs[j].failed = true
		s.reply(j)
		return
	}
	s.q = append(s.q, j)
	s.serve()
}

func (s *sim) serve() {
	for s.busy < s.active() && len(s.q) > s.qh {
		var j int32
		if s.w.order == "lifo" {
			j = s.q[len(s.q)-1]
			s.q = s.q[:len(s.q)-1]
		} else {
			j = s.q[s.qh]
			s.qh++
			if s.qh > 4096 && s.qh*2 > len(s.q) {
				s.q = append(s.q[:0], s.q[s.qh:]...)
				s.qh = 0
			}
		}
		b := &s.jobs[j]
		if s.w.honour && b.gone {
			continue
		}
		s.busy++
		s.h.push(event{at: s.later(b.work), kind: evDone, a: j})
	}
}

func (s *sim) advance() {
	from, to := s.vAt, s.now
	a, b := s.w.stall[0], s.w.stall[1]
	d := to - from - max(0, min(to, b)-max(from, a))
	if len(s.ph) > 0 {
		s.v += d * min(1, float64(s.active())/float64(len(s.ph)))
	}
	s.vAt = s.now
}

func (s *sim) reshare() {
	s.pgen++
	if len(s.ph) == 0 {
		return
	}
	left := max(0, s.ph[0].at-s.v) * max(1, float64(len(s.ph))/float64(s.active()))
	s.h.push(event{at: s.later(left), kind: evShare, a: s.pgen})
}

func (s *sim) reply(j int32) {
	b := &s.jobs[j]
	k := &s.calls[b.call]
	sd := s.sides[k.side]
	if s.w.lose && b.sent < s.w.stall[1] && s.now >= s.w.stall[0] {
		return // the connection is dead too
	}
	if k.gen != b.gen || k.state != 2 {
		if b.kept {
			sd.sentinel(b)
		}
		return
	}
	sd.answered(b.call, !b.failed)
}

func (s *sim) try(u int32) {
	s.users[u].tries++
	c := int32(len(s.calls))
	side := int32(0)
	if n := len(s.sides); n > 1 {
		side = int32(s.r.IntN(n))
	}
	s.calls = append(s.calls, call{born: s.now, user: u, side: side})
	patience := s.w.patience
	if s.w.leavers[0] > 0 && s.r.Float64() < s.w.leavers[0] {
		patience = s.w.leavers[1]
		s.users[u].fickle = true
	}
	s.h.push(event{at: s.now + patience, kind: evLeave, a: c})
	s.sides[side].admit(c)
}

// ends reports to the caller how the call ended: 0 good, 1 error or left, 2 refused.
func (s *sim) ends(c int32, how int) {
	k := &s.calls[c]
	k.state = 3
	k.gen++
	u := &s.users[k.user]
	if u.over {
		return
	}
	b := int(u.born * 10)
	if how == 0 {
		u.over = true
		s.good[b]++
		return
	}
	if s.w.own && u.tries < 3 {
		s.h.push(event{at: s.now + s.r.Float64()*0.1*math.Exp2(float64(u.tries-1)), kind: evAgain, a: k.user})
		return
	}
	u.over = true
	if how == 2 {
		s.refused[b]++
	}
}

func (s *sim) run() {
	s.h.push(event{kind: evArrive})
	for len(s.h) > 0 {
		e := s.h.pop()
		s.now = e.at
		if s.now >= s.w.end {
			return
		}
		switch e.kind {
		case evArrive:
			n := max(1, s.w.batch)
			s.h.push(event{at: s.now + s.gap()/(s.w.load*s.factor(s.w.crowd))*float64(n), kind: evArrive})
			for range n {
				s.users = append(s.users, user{born: s.now})
				s.sent[int(s.now*10)]++
				s.try(int32(len(s.users) - 1))
			}
		case evAgain:
			s.try(e.a)
		case evLeave:
			if k := &s.calls[e.a]; k.state != 3 {
				s.sides[k.side].left(e.a)
			}
		case evDone:
			s.reply(e.a)
			if s.w.stream > 0 && !s.jobs[e.a].gone {
				s.h.push(event{at: s.now + s.w.stream*(0.5+s.r.Float64()), kind: evFree, a: e.a})
				break
			}
			s.busy--
			s.serve()
		case evFree:
			s.busy--
			s.serve()
		case evShare:
			if e.a == s.pgen {
				s.advance()
				j := s.ph.pop().a
				s.reply(j)
				s.reshare()
			}
		case evTimeout:
			if k := &s.calls[e.a]; k.state == 2 && k.gen == e.b {
				s.sides[k.side].timedOut(e.a)
			}
		case evRetry:
			if k := &s.calls[e.a]; k.state == 0 {
				s.sides[k.side].admit(e.a)
			}
		case evQueue:
			if k := &s.calls[e.a]; k.state == 1 {
				s.sides[k.side].waitEnds(e.a)
			}
		case evPump:
			s.sides[e.a].pump()
		}
	}
}
