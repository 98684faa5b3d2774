package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/play"
)

// liveStory is the stall with fewer calls, which a busy machine can make. The load is two thirds of the capacity, so that the
// calls of the stall are served soon. 5 s of calls are enough to detect 99%.
func liveStory(length time.Duration) *play.Story {
	s := newStory(play.Trouble{Kind: play.Stall, From: length / 4, To: length/4 + 2*time.Second}, "")
	s.Length, s.Live, s.Machine.Does, s.Callers.Ask = length, true, 60, 40
	return &s
}

// live runs a story with real HTTP, both ways simultaneously, and prints a line each second.
func (c Config) live(ctx context.Context, r Result) error {
	s := liveStory(c.Live)
	g, err := newStage(c, s)
	if err != nil {
		return err
	}
	defer g.close()
	c.say(fmt.Sprintf("\nNow live, with real HTTP on this machine, through the sidecar: an upstream that\nhandles %d calls per second receives %.0f. After %.1f s it stalls for 2 s.\n\n",
		int(s.Machine.Does), s.Callers.Ask, s.Troubles[0].From.Seconds()))
	if g.play(ctx, s, c.Seed); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w := Ways{g.ways[0].log.Score(), g.ways[1].log.Score()}
	r["live"] = w
	c.say(s.Table(w.Direct, w.Weir))
	if !c.Stay || c.JSON {
		return nil
	}
	return g.stay(ctx)
}

// play sends the calls both ways and shows their progress until all have ended.
func (g *stage) play(ctx context.Context, s *play.Story, seed uint64) {
	var calls, show sync.WaitGroup
	ended := make(chan struct{})
	show.Go(func() { g.show(s, ended) })
	for _, w := range g.ways {
		for i := range play.Tenants {
			calls.Go(func() { w.callFor(ctx, s, i, seed) })
		}
	}
	calls.Wait()
	close(ended)
	show.Wait()
}

// callFor makes the calls of a tenant at their times.
func (w *way) callFor(ctx context.Context, s *play.Story, tenant int, seed uint64) {
	var calls sync.WaitGroup
	defer calls.Wait()
	r := rand.New(rand.NewPCG(seed, uint64(tenant)))
	for at := s.Next(r, 0, tenant); at < s.Length; at += s.Next(r, at, tenant) {
		if clock.System.Sleep(ctx, w.start+at-clock.System.Now()) != nil {
			return
		}
		call := w.log.Begin(tenant, at)
		calls.Go(func() {
			ok := w.client.Call(ctx, play.Request{Tenant: play.Tenants[tenant]})
			w.log.End(call, clock.System.Now()-w.start-at, ok)
		})
	}
}

// show prints a line each second.
func (g *stage) show(s *play.Story, ended <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for second := 1; ; second++ {
		select {
		case <-t.C:
			if at := time.Duration(second) * time.Second; at <= s.Length {
				g.config.say(line(s, at, g.ways))
			}
		case <-ended:
			return
		}
	}
}

// line describes the upstreams' work in the second before at.
func line(s *play.Story, at time.Duration, ways [2]*way) string {
	mark := ""
	if t := &s.Troubles[0]; at > t.From && at <= t.To {
		mark = s.Name
	}
	text := fmt.Sprintf("%3.0fs  %-6s", at.Seconds(), mark)
	for _, w := range ways {
		did := w.machine.Record()[int(at/time.Second)-1]
		text += fmt.Sprintf("   %s %3d done, %3d wasted", w.title, did.Useful, did.Wasted)
	}
	return text + "\n"
}
