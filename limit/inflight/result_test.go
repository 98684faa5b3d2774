package inflight

// A result describes how a sidecar performed in one run.
type result struct {
	back    float64 // s from the stall's end until every later second is 99% good, by time of birth; 999: never
	good    float64 // % of the calls from 2 s after the stall
	refused float64 // %
	goodput float64 // good calls, in % of the capacity
	sent    float64 // calls sent per offered call
}

func one(w world, p policy, seed uint64) result {
	s := newSim(w, p, seed)
	s.run()
	from := max(w.stall[1], w.down[1], w.warm)
	last := w.end - w.patience*1.2 - 4
	if w.own {
		last = w.end - 8
	}
	if w.stall[1] == 0 && w.down[1] == 0 { // calls without enough time for a response are not counted as refused
		last = max(last, from+(w.end-from)/2)
	}
	r := result{back: 999}
	for t := from; t < last-5; t += 0.1 {
		if s.fine(t, last-1) {
			r.back = t - from
			break
		}
	}
	offered := sum(s.sent, from, last)
	r.refused = 100 * sum(s.refused, from, last) / offered
	r.good = 100 * sum(s.good, from+2, last) / sum(s.sent, from+2, last)
	if d := w.down; d[1] > 0 {
		r.goodput = 100 * sum(s.good, d[0]+2, d[1]) / (w.cap * d[2] * (d[1] - d[0] - 2))
	} else {
		r.goodput = 100 * sum(s.good, from, last) / min(offered, w.cap*(last-from))
	}
	r.sent = s.arrivals / sum(s.sent, 0, w.end)
	return r
}

// fine reports whether 99% of the calls of each second in a time are good.
func (s *sim) fine(from, to float64) bool {
	for u := from; u < to; u++ {
		if n := sum(s.sent, u, u+1); n > 0 && sum(s.good, u, u+1) < 0.99*n {
			return false
		}
	}
	return true
}

// sum adds counts per tenth of a second.
func sum(x []float64, from, to float64) (n float64) {
	for i := int(from*10 + 0.5); i < int(to*10+0.5); i++ {
		n += x[i]
	}
	return n
}
