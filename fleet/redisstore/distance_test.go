package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/internal/test/delayproxy"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// distances are the delays of the proxy between a process and its server, in each direction.
var distances = map[string]delayproxy.Delay{
	"0":                       {},
	"1ms":                     {Each: time.Millisecond},
	"5ms":                     {Each: 5 * time.Millisecond},
	"20ms":                    {Each: 20 * time.Millisecond},
	"50ms":                    {Each: 50 * time.Millisecond},
	"150ms":                   {Each: 150 * time.Millisecond},
	"5ms and jitter":          {Each: 5 * time.Millisecond, Jitter: 10 * time.Millisecond},
	"20ms and a cold session": {Each: 20 * time.Millisecond, First: 200 * time.Millisecond},
}

// The store contract holds for a server behind a network with jitter.
func TestStoreThroughADelayingProxy(t *testing.T) {
	t.Parallel()
	p := delayproxy.New(t, servers.Redis(t).Addr(), delayproxy.Delay{Jitter: 200 * time.Microsecond, First: 20 * time.Millisecond})
	s := open(t, "redis://"+p.Addr())
	f := startFull(s)
	storetest.TestStore(t, func(testing.TB) fleet.Store { return f }, storetest.Hammer(500*time.Millisecond))
}

// At any distance, two processes that share a limit can make the calls that fit into its burst, and no more, with
// and without leases.
func TestFleetAtAnyDistanceUsesTheBurstAndNoMore(t *testing.T) {
	server := servers.Redis(t)
	for name, d := range distances {
		for _, lease := range []time.Duration{0, -1} {
			t.Run(fmt.Sprintf("%s, lease %v", name, lease), func(t *testing.T) {
				t.Parallel()
				p := delayproxy.New(t, server.Addr(), d)
				var why string
				for trial := range 3 { // a stalled machine may lose the units of a request
					if why = burstThrough(t, p, fmt.Sprint(name, lease, trial), lease); why == "" {
						return
					}
				}
				t.Error(why)
			})
		}
	}
}

// burstThrough makes more calls than fit into a burst. It returns a text about the unused part of the burst, empty
// if all was used.
func burstThrough(t *testing.T, p *delayproxy.Proxy, group string, lease time.Duration) (unused string) {
	// Of 400, the store holds back what the rate adds during the longest lease or guard, half a second. The rate
	// adds almost nothing meanwhile.
	l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 6, Per: time.Minute, Burst: 400}}
	const each, processes = 150, 2
	var mu sync.Mutex
	var wg sync.WaitGroup
	went, refused, last := 0, 0, limit.Verdict{}
	begin := time.Now()
	call := func(r *limit.Registry, patience time.Duration) {
		var c limit.Charges
		c.Add(limit.Charge{Registry: r, Cost: 1})
		now := clock.System.Now()
		v := c.Take(now)
		until := now + patience
		for c.Asks(v, until-now) {
			var err error
			if v, err = c.Fetch(context.Background(), now, until, limit.Normal); err != nil {
				t.Error(err)
			}
			if now = clock.System.Now(); !v.OK {
				break
			}
			v = c.Take(now)
		}
		mu.Lock()
		defer mu.Unlock()
		if v.OK {
			went++
		} else {
			refused, last = refused+1, v
		}
	}
	var regs []*limit.Registry
	for range processes {
		s, err := redisstore.Open("redis://"+p.Addr(), redisstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := fleet.New(startFull(closing(t, s)), fleet.Options{Lease: lease})
		f.Start()
		t.Cleanup(func() { _ = f.Close(context.Background()) })
		r, err := limit.NewShared(clock.System.Now(), l, f.Group(group))
		if err != nil {
			t.Fatal(err)
		}
		regs = append(regs, r)
	}
	for _, r := range regs {
		for range each {
			wg.Go(func() { call(r, 10*time.Second) })
		}
	}
	wg.Wait()
	if refused > 0 {
		unused = fmt.Sprintf("%d of %d calls within the burst were refused: %+v", refused, processes*each, last)
	}
	for _, r := range regs { // until no units remain
		for range each {
			wg.Go(func() { call(r, 0) })
		}
	}
	wg.Wait()
	if most := 400 + int(6*time.Since(begin).Minutes()) + 1; went > most {
		t.Errorf("%d calls went, want %d at most", went, most)
	}
	if went < 380 {
		unused += fmt.Sprintf("; %d calls went, want 400", went)
	}
	return unused
}
