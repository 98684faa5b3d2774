package recovery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A play is callers, sidecars and a machine. Zero fields have defaults.
type play struct {
	policy   weir.Policy
	sides    int                            // 0 means 1
	load     float64                        // calls per second; 0 means 280
	batch    int                            // simultaneous calls; 0 means 1
	patience time.Duration                  // timeout of callers; 0 means a second
	capacity float64                        // calls per second; 0 means 300
	mean     float64                        // seconds of work; 0 means 0.1
	work     func(*rand.Rand) time.Duration // nil means lognormal
	errs     float64                        // share of errors
	from     time.Duration                  // start of the fault; 0 means 30 s
	until    time.Duration                  // its end; 0 means 40 s, negative means no fault
	down     float64                        // see machine
	end      time.Duration                  // 0 means 70 s
	served   bool                           // through weir serve's proxy instead of the library's Transport
	yaml     string                         // of the upstream, if served
}

const (
	ms  = time.Millisecond
	sec = time.Second
)

func (p play) withDefaults() play {
	or := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	or(&p.load, 280)
	or(&p.capacity, 300)
	or(&p.mean, 0.1)
	p.sides, p.batch = max(p.sides, 1), max(p.batch, 1)
	if p.patience == 0 {
		p.patience = sec
	}
	if p.work == nil {
		p.work = lognormal(p.mean)
	}
	if p.from == 0 {
		p.from = 30 * sec
	}
	if p.until == 0 {
		p.until = 40 * sec
	}
	if p.end == 0 {
		p.end = 70 * sec
	}
	return p
}

// A score is the result of a run.
type score struct {
	sent, good, refused []float64 // calls by the tenth of a second of their start
	came                []float64 // calls that reached the machine
	flights             []weir.FlightView
}

// run simulates one seed. It must run in a bubble.
func (p play) run(t testing.TB, seed uint64) *score {
	p = p.withDefaults()
	r := rand.New(rand.NewPCG(seed, 5))
	m := &machine{rand: rand.New(rand.NewPCG(seed, 6)), start: time.Now(), work: p.work, errs: p.errs, from: p.from, until: p.until, down: p.down}
	m.workers = max(1, int(math.Round(p.capacity*p.mean)))
	if p.until < 0 {
		m.from, m.until = -1, -1
	}
	s := &score{}
	tenths := int(p.end/(100*ms)) + 1
	s.sent, s.good, s.refused, s.came = make([]float64, tenths), make([]float64, tenths), make([]float64, tenths), make([]float64, tenths)
	m.came = s.came
	n := memnet.New()
	defer n.Close()
	sides, all := p.fronts(t, n, m)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for at := time.Duration(0); ; {
		at += time.Duration(r.ExpFloat64() * float64(p.batch) / p.load * 1e9)
		if time.Sleep(at - time.Since(m.start)); at >= p.end {
			break
		}
		for range p.batch {
			i, side := int(at/(100*ms)), sides[r.IntN(len(sides))]
			s.sent[i]++
			wg.Go(func() {
				good, refused := p.call(side)
				mu.Lock()
				if good {
					s.good[i]++
				} else if refused {
					s.refused[i]++
				}
				mu.Unlock()
			})
		}
	}
	wg.Wait()
	for _, u := range all {
		s.flights = append(s.flights, u.Look(0).Flights...)
	}
	time.Sleep(40 * sec) // until records expire
	return s
}

// fronts returns the clients of the machine: the library, or sidecars.
func (p play) fronts(t testing.TB, n *memnet.Network, m *machine) (sides []http.RoundTripper, all []*weir.Upstream) {
	if p.served {
		for _, s := range newSidecars(t, n, m, p.yaml, p.sides) {
			sides, all = append(sides, s), append(all, s.proxy.Upstreams()["api"])
		}
		return sides, all
	}
	for range p.sides {
		u, err := weir.New("api", p.policy, weir.Options{Events: heard()})
		if err != nil {
			t.Fatal(err)
		}
		sides, all = append(sides, httpx.NewTransport(u, m)), append(all, u)
	}
	return sides, all
}

func (p play) call(side http.RoundTripper) (good, refused bool) {
	ctx, cancel := context.WithTimeout(context.Background(), p.patience)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/x", nil)
	resp, err := side.RoundTrip(req)
	if err != nil {
		_, refused = errors.AsType[*weir.Refusal](err)
		return false, refused
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
}

func sum(x []float64, from, to time.Duration) (n float64) {
	for i := from / (100 * ms); i < to/(100*ms); i++ {
		n += x[i]
	}
	return n
}

// share returns part in percent of `of`, or 0 without calls.
func share(part, of []float64, from, to time.Duration) float64 {
	if all := sum(of, from, to); all > 0 {
		return 100 * sum(part, from, to) / all
	}
	return 0
}

// back returns the time until each later second is 99% good, or 999 s.
func (s *score) back(from, to time.Duration) float64 {
	for t := from; t < to-5*sec; t += 100 * ms {
		fine := true
		for u := t; u <= to-sec && fine; u += sec {
			n := sum(s.sent, u, u+sec)
			fine = n == 0 || sum(s.good, u, u+sec) >= 0.99*n
		}
		if fine {
			return (t - from).Seconds()
		}
	}
	return 999
}

// plays returns the scores of several seeds.
func plays(t *testing.T, p play, seeds int) (all []*score) {
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { all = append(all, p.run(t, uint64(seed+1))) })
	}
	return all
}

// A number is a figure over several seeds.
type number struct{ median, mean float64 }

func (n number) String() string { return fmt.Sprintf("%.2f (mean %.2f)", n.median, n.mean) }

func figure(all []*score, f func(*score) float64) (n number) {
	var x []float64
	for _, s := range all {
		x = append(x, f(s))
		n.mean += f(s) / float64(len(all))
	}
	slices.Sort(x)
	n.median = x[len(x)/2]
	return n
}
