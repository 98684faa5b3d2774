package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// liveStory is the stall with fewer calls, which a busy machine can make. The load is two thirds of the capacity, so that the
// calls of the stall are served soon. 5 s of calls are enough to detect 99%.
func liveStory(length time.Duration) story {
	return story{
		name: "stall", length: length, live: true,
		workers: 6, rate: 10, stall: span{length / 4, length/4 + 2*time.Second}, steady: 5 * time.Second,
	}
}

// live runs a story with real HTTP, both ways simultaneously, and prints a line each second.
func (c Config) live(ctx context.Context, r Result) error {
	s := liveStory(c.Live)
	g, err := newStage(c, s)
	if err != nil {
		return err
	}
	defer g.close()
	c.say(fmt.Sprintf("\nNow live, with real HTTP on this machine, through the sidecar: an upstream that\ndoes %d calls a second, asked for %.0f. After %.1f s it stands still for 2 s.\n\n",
		capacity(s.workers), s.rate*float64(len(tenants)), s.stall.from.Seconds()))
	if g.play(ctx, s, c.Seed); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w := Ways{g.ways[0].log.score(), g.ways[1].log.score()}
	r["live"] = w
	c.say(s.table(w.Direct, w.Weir))
	if !c.Stay || c.JSON {
		return nil
	}
	return g.stay(ctx)
}

// play sends the calls both ways and shows their progress until all have ended.
func (g *stage) play(ctx context.Context, s story, seed uint64) {
	var calls, show sync.WaitGroup
	ended := make(chan struct{})
	show.Go(func() { g.show(s, ended) })
	for _, w := range g.ways {
		for i := range tenants {
			calls.Go(func() { w.callFor(ctx, s, i, seed) })
		}
	}
	calls.Wait()
	close(ended)
	show.Wait()
}

// callFor makes the calls of a tenant at their times.
func (w *way) callFor(ctx context.Context, s story, tenant int, seed uint64) {
	var calls sync.WaitGroup
	defer calls.Wait()
	r := rand.New(rand.NewPCG(seed, uint64(tenant)))
	for at := s.next(r, 0, tenant); at < s.length; at += s.next(r, at, tenant) {
		if clock.System.Sleep(ctx, w.machine.start+at-clock.System.Now()) != nil {
			return
		}
		calls.Go(func() {
			ok := w.client.call(ctx, tenants[tenant])
			w.log.note(end{tenant: tenant, began: at, took: clock.System.Now() - w.machine.start - at, ok: ok})
		})
	}
}

// show prints a line each second.
func (g *stage) show(s story, ended <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for second := 1; ; second++ {
		select {
		case <-t.C:
			if at := time.Duration(second) * time.Second; at <= s.length {
				g.config.say(line(s, at, g.ways))
			}
		case <-ended:
			return
		}
	}
}

// line describes the upstreams' work in the second before at.
func line(s story, at time.Duration, ways [2]*way) string {
	mark := ""
	if s.stall.holds(at - time.Millisecond) {
		mark = s.name
	}
	text := fmt.Sprintf("%3.0fs  %-6s", at.Seconds(), mark)
	for _, w := range ways {
		did := w.machine.record()[int(at/time.Second)-1]
		text += fmt.Sprintf("   %s %3d done, %3d in vain", w.title, did.Useful, did.Wasted)
	}
	return text + "\n"
}
