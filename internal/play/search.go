package play

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
)

// Loads of the search, as shares of the machine's capacity, or of the lowest limit if that is less.
var searchLoads = [...]float64{0.3, 0.5, 0.7, 0.8, 0.9, 0.97}

// Lengths of stalls that the search tries before it bisects. A longer stall can be better than a short one, because
// it opens a breaker. So the search tries every length.
var searchStalls = [...]time.Duration{
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
	8 * time.Second, 16 * time.Second, 32 * time.Second,
}

// A Curve contains the smallest triggers of one way, by load.
type Curve struct {
	Way    string  `json:"way"` // "without weir", or the name of a file
	Points []Point `json:"points"`
}

// A Point is the result of the search at one load.
type Point struct {
	Load float64 `json:"load"`
	Ask  float64 `json:"ask"` // calls per second

	// Stuck is the shortest stall that was found after which fewer than half of the calls are answered, and Free is the longest
	// shorter stall after which most are. Stuck is 0 if none was found.
	StuckMS int64 `json:"stuck_ms"`
	FreeMS  int64 `json:"free_ms"`

	// LongerFree are stalls longer than Stuck after which most calls are answered: the result is not monotone.
	LongerFreeMS []int64 `json:"longer_free_ms,omitempty"`

	Overloaded bool `json:"overloaded,omitempty"` // fewer than half of the calls are answered without a stall
	Unfinished bool `json:"unfinished,omitempty"` // the search was interrupted
}

// A Search is the search for the smallest trigger.
type Search struct {
	Seed     uint64
	Target   *Target
	Ways     []Way
	Progress func(done, all int) // is called after each point, from one goroutine at a time; may be nil
}

// A Way is a policy to search with.
type Way struct {
	Name   string
	Policy *weir.Policy // nil means without weir
}

// Run returns a curve for each way, in their order. If ctx ends earlier, points are unfinished.
func (q *Search) Run(ctx context.Context, base Story) ([]Curve, error) {
	curves := make([]Curve, len(q.Ways))
	for i := range curves {
		curves[i] = Curve{q.Ways[i].Name, make([]Point, len(searchLoads))}
	}
	var (
		mu    sync.Mutex // guards first and done
		first error
		done  int
		wg    sync.WaitGroup
	)
	type job struct{ way, load int }
	jobs := make(chan job)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for j := range jobs {
				p, err := q.point(ctx, base, searchLoads[j.load], q.Ways[j.way].Policy)
				curves[j.way].Points[j.load] = p
				mu.Lock()
				if done++; err != nil && first == nil {
					first = err
				}
				if q.Progress != nil {
					q.Progress(done, len(curves)*len(searchLoads))
				}
				mu.Unlock()
			}
		})
	}
	for load := len(searchLoads) - 1; load >= 0; load-- { // the longest runs first
		for way := range curves {
			jobs <- job{way, load}
		}
	}
	close(jobs)
	wg.Wait()
	return curves, first
}

// Stalled returns the story of a search: a stall at a load.
func (q *Search) Stalled(base Story, load float64, stall time.Duration) Story {
	const begin, after = 10 * time.Second, 45 * time.Second
	lowest, _ := q.Target.lowest(base.Callers.Operation)
	s := base
	s.Name, s.Title, s.Upstream = "stall", fmt.Sprintf("a stall of %v at %.0f%% load", stall, 100*load), q.Target.Name
	s.Callers.Ask = load * min(lowest, base.Machine.Does)
	s.Troubles, s.Expect = []Trouble{{Kind: Stall, From: begin, To: begin + stall}}, nil
	s.Length = begin + stall + after
	return s
}

// point searches at one load.
func (q *Search) point(ctx context.Context, base Story, load float64, policy *weir.Policy) (Point, error) {
	p := Point{Load: load, Ask: q.Stalled(base, load, 0).Callers.Ask}
	tried := make(map[time.Duration]bool)
	var failed error
	stuck := func(stall time.Duration) bool {
		if ctx.Err() != nil || failed != nil {
			p.Unfinished = true
			return false
		}
		s := q.Stalled(base, load, stall)
		score, err := s.Play(ctx, q.Seed, policy, nil)
		if err != nil {
			failed = err
			return false
		}
		p.Overloaded = p.Overloaded || stall == searchStalls[0] && score.Before >= 0 && score.Before < 0.5
		bad := score.After >= 0 && score.After < 0.5
		if p.Unfinished = p.Unfinished || score.EndedMS > 0; !p.Unfinished {
			tried[stall] = bad
		}
		return bad
	}
	low, high := time.Duration(0), time.Duration(0)
	for _, stall := range searchStalls {
		if bad := stuck(stall); bad && high == 0 {
			high = stall
		} else if high == 0 {
			low = stall
		}
		if p.Unfinished || p.Overloaded {
			return p, failed
		}
	}
	for high > 0 && high-low > max(100*time.Millisecond, high/10) && !p.Unfinished {
		if middle := ((low + high) / 2).Round(10 * time.Millisecond); stuck(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	p.StuckMS, p.FreeMS = high.Milliseconds(), low.Milliseconds()
	for stall, bad := range tried {
		if high > 0 && stall > high && !bad {
			p.LongerFreeMS = append(p.LongerFreeMS, stall.Milliseconds())
		}
	}
	slices.Sort(p.LongerFreeMS)
	return p, failed
}

// Example returns the story of the smallest trigger of a curve at its highest load, and whether there is one.
func (q *Search) Example(base Story, c *Curve) (Story, bool) {
	for _, p := range slices.Backward(c.Points) {
		if p.StuckMS > 0 {
			return q.Stalled(base, p.Load, time.Duration(p.StuckMS)*time.Millisecond), true
		}
	}
	return Story{}, false
}
