package endure

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A score has the results of the calls of several runs.
type score struct{ calls, good, attempts, seconds float64 }

func (s score) share() float64   { return s.good / s.calls }
func (s score) perCall() float64 { return s.attempts / s.calls }
func (s score) String() string {
	return fmt.Sprintf("%.1f%% good, %.2f attempts a call", 100*s.share(), s.perCall())
}

const second = time.Second

// faults returns the faults of a provider under a load. Temporary ones begin during calls.
func faults(l load, waits bool) []fault {
	from := time.Duration(0)
	if l.every > 0 {
		from = 12 * second // the program has run for a while
	}
	spell := func(d time.Duration) (time.Duration, time.Duration) { return from, from + d }
	at := func(name string, d time.Duration, f fault) fault {
		f.name = name
		f.from, f.to = spell(d)
		return f
	}
	all := []fault{
		{name: "nothing"},
		{name: "30% throttled", share: 0.3, throttled: true},
		{name: "50% throttled", share: 0.5, throttled: true},
		at("all throttled for 1s", second, fault{throttled: true}),
		at("all throttled for 2s", 2*second, fault{throttled: true}),
		{name: "a quarter passes each second", perSecond: math.Ceil(float64(l.calls) / 4), throttled: true},
		{name: "30% fail", share: 0.3},
		{name: "50% fail", share: 0.5},
		at("all fail for 100ms", second/10, fault{}),
		at("all fail for 1s", second, fault{}),
		at("all fail for 2s", 2*second, fault{}),
		at("stall of 5s", 5*second, fault{stall: true}),
		at("stall of 20s", 20*second, fault{stall: true}),
		{name: "outage", to: time.Hour, outage: true},
	}
	if waits {
		all = append(all, at("all throttled for 2s, and told so", 2*second, fault{throttled: true, after: 2}))
	}
	return all
}

// play makes the calls of a load in virtual time, several times.
func play(t *testing.T, l load, f fault, w words, seeds int, made func(p *provider, seed uint64) client) (s score) {
	for seed := range uint64(seeds) {
		synctest.Test(t, func(*testing.T) {
			p, began := open(f, w, seed), time.Now()
			call := made(p, seed)
			var good sync.Mutex
			var calls sync.WaitGroup
			for range l.calls {
				calls.Go(func() {
					if call(context.Background()) == nil {
						good.Lock()
						s.good++
						good.Unlock()
					}
				})
				time.Sleep(l.every)
			}
			calls.Wait()
			s.calls += float64(l.calls)
			s.attempts += float64(p.attempts)
			s.seconds += time.Since(began).Seconds()
		})
	}
	return s
}

func (c *candidate) play(t *testing.T, l load, f fault, seeds int) score {
	return play(t, l, f, c.words, seeds, func(p *provider, _ uint64) client { return c.behind(t, p) })
}

func (b *bare) play(t *testing.T, l load, f fault, w words, seeds int) score {
	return play(t, l, f, w, seeds, b.make)
}
