package adaptive

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/outcome"
)

// A contest consists of clients that want as much as possible from one upstream, a token bucket that they do not
// know. Each may send twice the limit.
type contest struct {
	rule    Rule
	clients int
	limit   float64 // the true limit per second
	trip    time.Duration
	length  time.Duration
	from    time.Duration // start of the measurement
}

type result struct {
	used    float64 // share of the limit
	refused float64 // share of the attempts
	jain    float64 // 1 if all clients get the same
	slowest float64 // ratio of the slowest client to the fastest
}

type sender struct {
	k    *Controller
	next time.Duration // when it sends
	good float64
}

type report struct {
	due, sent time.Duration
	by        *sender
	class     outcome.Class
}

func (c contest) run(seed uint64) result {
	r := rand.New(rand.NewPCG(seed, 1))
	senders := make([]*sender, c.clients)
	for i := range senders {
		start := 2 * c.limit / float64(c.clients)
		if i == 0 {
			start *= 2
		}
		conf := Config{On: true, Rule: c.rule, Start: min(start, 2*c.limit)}
		senders[i] = &sender{k: NewController(0, conf, 2*c.limit), next: time.Duration(r.Int64N(int64(10 * ms)))}
	}
	burst := max(1, float64(c.clients)/2, c.limit/10)
	tokens, last := burst, time.Duration(0)
	var reports []report // in order: the round trip is the same for all
	var sent, refused, good float64
	for {
		s := first(senders)
		for len(reports) > 0 && reports[0].due <= s.next {
			p := reports[0]
			reports = reports[1:]
			p.by.k.Report(p.due, p.sent, p.class, 1)
		}
		now := s.next
		if now >= c.length {
			break
		}
		s.next += time.Duration(float64(sec) / s.k.Rate())
		arrives := now + c.trip/2
		tokens = min(burst, tokens+(arrives-last).Seconds()*c.limit)
		last = arrives
		p := report{now + c.trip, now, s, outcome.OK}
		if tokens >= 1 {
			tokens--
		} else {
			p.class = outcome.Throttled
		}
		reports = append(reports, p)
		if now >= c.from {
			sent++
			if p.class == outcome.OK {
				good++
				s.good++
			} else {
				refused++
			}
		}
	}
	res := result{used: good / (c.limit * (c.length - c.from).Seconds()), refused: refused / sent}
	res.jain, res.slowest = fairness(senders)
	return res
}

func first(senders []*sender) *sender {
	best := senders[0]
	for _, s := range senders[1:] {
		if s.next < best.next {
			best = s
		}
	}
	return best
}

// fairness returns Jain's index, (sum x)^2 / (n * sum x^2), and slowest over fastest.
func fairness(senders []*sender) (jain, slowest float64) {
	sum, squares, lo, hi := 0.0, 0.0, senders[0].good, 0.0
	for _, s := range senders {
		sum, squares = sum+s.good, squares+s.good*s.good
		lo, hi = min(lo, s.good), max(hi, s.good)
	}
	return sum * sum / (float64(len(senders)) * squares), lo / hi
}

// A bound is the minimum that a rule must reach.
type bound struct{ used, refused, jain float64 }

// bound returns the requirement for one client, and for ten that share the limit.
//
// At 5 per second a single refusal weighs much: multiply is refused once in 13 s. Ten clients that do not know each
// other are each refused in each of their cycles, which at 5 per second is a tenth of the limit, and some of them get
// almost nothing. Such a limit needs a shared store.
func (c contest) bound() bound {
	few := c.limit < 10
	switch {
	case c.clients == 1 && few && c.rule == Multiply:
		return bound{0.65, 0.02, 1} // at 5 per second the plain rule misses 70%; it is not the default
	case c.clients == 1 && c.rule == Cubic:
		return bound{0.9, 0.01, 1}
	case c.clients == 1:
		return bound{0.7, 0.01, 1}
	case few:
		return bound{0.85, 0.15, 0.25}
	case c.rule == Cubic:
		return bound{0.9, 0.01, 0.8}
	case c.rule == Multiply:
		return bound{0.8, 0.01, 0.65}
	}
	return bound{0.8, 0.03, 0.95}
}

// worst returns the worst of each figure over the seeds.
func (c contest) worst(seeds uint64) result {
	w := c.run(1)
	for seed := uint64(2); seed <= seeds; seed++ {
		r := c.run(seed)
		w = result{min(w.used, r.used), max(w.refused, r.refused), min(w.jain, r.jain), min(w.slowest, r.slowest)}
	}
	return w
}

// TestSimulation is table 1.7 of the project's notes on reliability with the rules of this package and their
// defaults: a limit with a burst of a tenth of a second, a round trip of 50 ms, and 120 s, of which the last 90
// count. Each figure is the worst of five seeds.
func TestSimulation(t *testing.T) {
	raced.Skip(t, "it plays many long histories, and shorter tests run the same code")
	t.Logf("%-8s %7s %9s | %6s %8s %6s %8s", "rule", "clients", "limit/s", "used", "refused", "Jain", "slowest")
	for _, clients := range []int{1, 10} {
		for _, limit := range []float64{5, 100, 1500, 5000} {
			for _, rule := range []Rule{Cubic, Multiply, Add} {
				c := contest{rule: rule, clients: clients, limit: limit, trip: 50 * ms, length: 120 * sec, from: 30 * sec}
				got, want := c.worst(5), c.bound()
				t.Logf("%-8v %7d %9v | %5.1f%% %7.2f%% %6.3f %8.2f", rule, clients, limit, 100*got.used, 100*got.refused, got.jain, got.slowest)
				if got.used < want.used || got.refused > want.refused || got.jain < want.jain {
					t.Errorf("%v, %d clients, %v/s: %+v, want at least %+v", rule, clients, limit, got, want)
				}
			}
		}
	}
}
