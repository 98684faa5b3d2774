package line

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A nomad waits for its own limit and for one that many share, and counts reservations when it asks.
type nomad struct {
	lines *Lines
	call  *Call
	own   string
	at    time.Duration // when its own limit admits it
	moved bool
	seen  int // the most reservations in the shared queue
}

func (n *nomad) Ask(now, _ time.Duration) Step {
	kept := 0
	for range n.lines.Kept(now, "all", &Call{}) {
		kept++
	}
	n.seen = max(n.seen, kept)
	switch {
	case now < n.at && n.moved:
		return Step{Kind: Wait, For: n.at - now}
	case now < n.at:
		n.moved = true
		return Step{Kind: Move, For: n.at - now, Spot: Spot{Key: n.own, Cost: 1}}
	}
	return Step{Kind: Go}
}

// A thousand users wait, each for its own limit and one that all share. The number of reservations in the shared
// queue, which each asking call goes through, is bounded, and the earliest calls have them.
func TestNoMoreIsKeptThanIsGoneThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, begin := NewLines(clock.System, Config{}), clock.System.Now()
		all := make([]*nomad, 1000)
		var wg sync.WaitGroup
		for i := range all {
			n := &nomad{lines: lines, own: fmt.Sprint(i), at: begin + time.Second + time.Duration(i*7%1000)*ms}
			n.call = &Call{Asker: n, Until: never}
			all[i] = n
			wg.Go(func() {
				if _, err := lines.Wait(context.Background(), begin, n.call, Spot{Key: "all", Cost: 1}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		lines.mu.Lock()
		for k := range lines.Kept(begin, "all", &Call{}) {
			if n := k.Asker.(*nomad); n.call.Came > mostKept {
				t.Errorf("something is kept for who came as the %dth", n.call.Came)
			}
		}
		lines.mu.Unlock()
		wg.Wait()
		most := 0
		for _, n := range all {
			most = max(most, n.seen)
		}
		if most != mostKept {
			t.Errorf("one that asked found that something is kept for %d, want %d", most, mostKept)
		}
		if lines.keeps != 0 || len(lines.byKey) != 0 {
			t.Errorf("%d are kept still, in %v", lines.keeps, lines.byKey)
		}
	})
}

// A reservation ends with the wait of its call. This uses the system's clock, whose instants differ from a bubble's.
func TestWhatIsKeptIsLetGo(t *testing.T) {
	lines, begin := NewLines(clock.System, Config{}), clock.System.Now()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := &wanderer{{Kind: Move, For: time.Hour, Spot: Spot{Key: "b", Cost: 1}}, {Kind: Wait, For: time.Minute}}
		_, _ = lines.Wait(ctx, begin, &Call{Asker: w, Until: end}, Spot{Key: "a", Cost: 1})
	}()
	kept := func() int {
		lines.mu.Lock()
		defer lines.mu.Unlock()
		return lines.keeps
	}
	for kept() == 0 {
		runtime.Gosched()
	}
	cancel()
	<-done
	if n := kept(); n > 0 || len(lines.byKey) > 0 {
		t.Errorf("something is kept still, in %v", lines.byKey)
	}
}
