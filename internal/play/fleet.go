package play

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sim"
)

// A Store has the settings of a shared store. A store in memory replaces the real one.
type Store struct {
	fleet.Options
	Latency time.Duration // of a request
}

// A FleetScore is the result of several processes that share a limit.
type FleetScore struct {
	Processes int `json:"processes"`
	Over      int `json:"over"` // attempts beyond the limit, in the worst time of any length

	// RequestsBefore and RequestsAfter are the highest numbers of requests to the store in a second, before the trouble
	// and after it.
	RequestsBefore int `json:"requests_before"`
	RequestsAfter  int `json:"requests_after"`
}

// fleet puts several processes with weir between callers and machine. Each tenant calls every process in turn.
func (r *run) fleet(p *weir.Policy, c *Store) error {
	w := r.world
	store := &distant{Store: fleet.NewMemory(func() time.Time { return w.Clock().Wall(w.Now()) }), clock: w.Clock(), story: r.story, latency: c.Latency, seconds: make([]int, r.story.Length/time.Second+1)}
	var all []func(context.Context, Request) Reply
	for range r.story.Processes {
		o := c.Options
		o.Clock, o.Rand, o.Members = w.Clock(), w.Rand(), "-"
		f := fleet.New(store, o)
		u, err := weir.New("api", *p, weir.Options{Clock: w.Clock(), Rand: w.Rand(), Fleet: f, Events: r.events()})
		if err != nil {
			return err
		}
		w.Go(func() { f.Run(context.Background()) })
		all = append(all, r.through(u))
	}
	for i := range r.send {
		next := i
		r.send[i] = func(ctx context.Context, q Request) Reply {
			next++
			return all[next%len(all)](ctx, q)
		}
	}
	r.machine.keeps = true
	r.log.fleet = func() *FleetScore { return r.fleetScore(p, store) }
	return nil
}

func (r *run) fleetScore(p *weir.Policy, d *distant) *FleetScore {
	s := &FleetScore{Processes: r.story.Processes}
	from, to := r.story.trouble()
	for i, n := range d.seconds {
		switch at := time.Duration(i) * time.Second; {
		case at+time.Second <= from && i > 0: // in the first second all processes join
			s.RequestsBefore = max(s.RequestsBefore, n)
		case at >= to:
			s.RequestsAfter = max(s.RequestsAfter, n)
		}
	}
	for i := range p.Limits {
		if l := &p.Limits[i]; l.Scope == "" && l.Shape == limit.Bucket && requests(l) && counts(l, r.operation()) {
			s.Over = max(s.Over, over(r.machine.arrivals, l))
		}
	}
	return s
}

func (r *run) operation() string {
	if r.story.Callers.Operation == "" {
		return weir.DefaultOperation
	}
	return r.story.Callers.Operation
}

// requests reports whether a limit counts requests.
func requests(l *limit.Limit) bool { return l.Unit == "" || l.Unit == limit.Requests }

// over returns how many arrivals of the worst time exceed the limit. If level is the debt of a bucket to which every
// arrival adds, the highest level minus the burst is the excess.
func over(arrivals []time.Duration, l *limit.Limit) (worst int) {
	var level float64
	var last time.Duration
	for _, at := range arrivals {
		level = max(0, level-l.PerSecond()*(at-last).Seconds()) + 1
		last = at
		worst = max(worst, int(level-float64(l.Full())+1-1e-6))
	}
	return max(0, worst)
}

// A distant is a store with a latency. During trouble of kind StoreAway it does not respond.
type distant struct {
	fleet.Store
	clock   *sim.Clock
	story   *Story
	latency time.Duration
	seconds []int // requests that reached it
}

var errAway = errors.New("store is away")

// request waits as a request does, and reports whether the store got it.
func (d *distant) request(ctx context.Context) error {
	now := d.clock.Now()
	if i := int(now / time.Second); i < len(d.seconds) {
		d.seconds[i]++
	}
	if t := d.story.find(StoreAway, now); t != nil {
		if err := d.clock.Sleep(ctx, t.To-now); err != nil {
			return err
		}
		return errAway
	}
	return d.clock.Sleep(ctx, d.latency)
}

func (d *distant) Take(ctx context.Context, a *fleet.Ask) error {
	if err := d.request(ctx); err != nil {
		return err
	}
	return d.Store.Take(ctx, a)
}

func (d *distant) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if err := d.request(ctx); err != nil {
		return fleet.Standing{}, err
	}
	return d.Store.Beat(ctx, b)
}

func (d *distant) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	if err := d.request(ctx); err != nil {
		return nil, time.Time{}, err
	}
	return d.Store.Load(ctx, group, names)
}

func (d *distant) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	if err := d.request(ctx); err != nil {
		return fleet.Record{}, false, err
	}
	return d.Store.Swap(ctx, group, r)
}
