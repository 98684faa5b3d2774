package serve

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// A finder checks the store: whether it responds, why not, and for which upstreams it has no record of usage. It logs
// changes.
type finder struct {
	kind      string
	store     fleet.Store
	fleet     *fleet.Fleet
	upstreams func() map[string]*weir.Upstream
	metrics   *weirprom.Fleet
	log       *slog.Logger
	away      bool // at the last check, the fleet ran without the store

	mu      sync.Mutex
	found   status.Found  // without Cold
	told    string        // the last logged error
	wasCold []status.Cold // as last logged
	unsure  time.Duration // since when the store's clock is not known precisely; 0 if it is
	warned  bool          // that was logged
}

const (
	lookTime  = 5 * time.Second
	firstLook = 500 * time.Millisecond // interval between checks of an unreachable store
	lastLook  = 30 * time.Second
	everyLook = time.Minute
	everyCold = time.Second

	// clockTime is how long the measurement of the store's clock may take without a warning.
	clockTime = 10 * time.Second
)

// run checks until ctx ends.
func (f *finder) run(ctx context.Context) {
	next, wait := clock.System.Now(), firstLook
	for {
		if now := clock.System.Now(); now >= next || f.away != (f.fleet.Why() != nil) {
			d := everyLook
			if !f.look(ctx) {
				d, wait = wait, min(2*wait, lastLook)
			} else {
				wait = firstLook
			}
			next = clock.System.Now() + d
		}
		f.tellCold(f.cold())
		f.tellClock(clock.System.Now())
		if clock.System.Sleep(ctx, min(everyCold, max(1, next-clock.System.Now()))) != nil {
			return
		}
	}
}

// look checks once, and reports whether the store responded.
func (f *finder) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	_, _, err := f.store.Load(ctx, "", nil)
	why := f.fleet.Why() // a demoted store can be read but not written
	if why == nil && (f.found.Error != "" || !f.found.Reached) {
		why = f.fleet.Failing() // it is over when a heartbeat has succeeded
	}
	f.away = why != nil
	f.note(cmp.Or(err, why))
	return err == nil
}

// cold returns the upstreams for which the store has no record of usage, according to the last heartbeat responses. It
// makes no request.
func (f *finder) cold() (all []status.Cold) {
	ups := f.upstreams()
	for _, p := range f.fleet.Places() {
		if u := ups[p.Group]; u != nil {
			for _, c := range coldOf(u.Policy().Limits, p.Warm) {
				c.Upstream = p.Group
				all = append(all, c)
			}
		}
	}
	return all
}

// coldOf returns, for each cold setting, the limit that takes longest until the store can grant it completely.
func coldOf(limits []limit.Limit, warm func(*limit.Limit) time.Duration) (all []status.Cold) {
	for _, mode := range []limit.Cold{limit.ColdRefuse, limit.ColdShare, limit.ColdFull} {
		c := status.Cold{Mode: mode}
		for i := range limits {
			l := &limits[i]
			if lasts := warm(l).Milliseconds(); l.Cold == mode && lasts > c.LastsMS {
				c.Limit, c.Quota, c.LastsMS = cmp.Or(l.Name, l.Unit), l.Shape == limit.Calendar, lasts
			}
		}
		if c.LastsMS > 0 {
			all = append(all, c)
		}
	}
	return all
}

// note records the result of a check, and logs a change.
func (f *finder) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.found
	if !was.Reached {
		f.found.Looks++
	}
	if err != nil {
		f.found.Error = err.Error()
		if f.told != f.found.Error {
			f.told = f.found.Error
			f.log.Warn("store not reached", "store", f.kind, "error", f.told, "looks", f.found.Looks)
		}
		return
	}
	f.found.Reached, f.found.Error, f.told = true, "", ""
	f.metrics.Reached()
	if !was.Reached || was.Error != "" {
		f.log.Info("store reached", "store", f.kind, "looks", f.found.Looks)
	}
}

// tellCold logs for which upstreams the store became cold or warm.
func (f *finder) tellCold(is []status.Cold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.wasCold
	f.wasCold = is
	for name := range f.upstreams() {
		f.metrics.Cold(name, among(is, name))
	}
	for _, c := range was {
		if !among(is, c.Upstream) && f.upstreams()[c.Upstream] != nil {
			f.log.Info("store has usage of limits", "store", f.kind, "upstream", c.Upstream)
		}
	}
	for _, c := range is {
		if !among(was, c.Upstream) {
			f.log.Warn("store is cold", "store", f.kind, "upstream", c.Upstream, "limit", c.Limit, "quota", c.Quota,
				"at_most", (time.Duration(c.LastsMS) * time.Millisecond).String(), "cold", c.Mode.String(), "help", coldHelp[c.Mode])
		}
	}
}

// coldHelp is the log's text for each cold setting.
var coldHelp = map[limit.Cold]string{
	limit.ColdRefuse: "the store has no record of the usage of the limits, and counts them as used up; if they were not used, run weir store init",
	limit.ColdShare:  "the store has no record of the usage of the limits: each process uses at most its share; earlier usage may exceed the limit",
	limit.ColdFull:   "the store has no record of the usage of the limits: they started full; earlier usage may exceed the limit",
}

// tellClock exports how precisely the store's clock is known, and warns if it stays imprecise.
func (f *finder) tellClock(now time.Duration) {
	c, ok := f.store.(fleet.Clocked)
	if !ok {
		return
	}
	k := c.ClockState()
	f.metrics.Clock(k)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case k.Known && !k.Rough:
		if f.warned {
			f.log.Info("store clock known", "store", f.kind, "uncertainty", k.Uncertainty.String(), "round_trip", k.RoundTrip.String())
		}
		f.unsure, f.warned = 0, false
	case f.unsure == 0:
		f.unsure = max(1, now)
	case now-f.unsure >= clockTime && !f.warned:
		f.warned = true
		f.log.Warn("store clock not known", "store", f.kind, "known", k.Known, "uncertainty", k.Uncertainty.String(), "round_trip", k.RoundTrip.String(),
			"help", "limits grant less until the store's clock is measured more precisely; weir check --connect measures it")
	}
}

func among(all []status.Cold, upstream string) bool {
	return slices.ContainsFunc(all, func(c status.Cold) bool { return c.Upstream == upstream })
}

// status returns the current state of the store.
func (f *finder) status() *status.Found {
	cold := f.cold()
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.found
	found.Cold = cold
	if c, ok := f.store.(fleet.Clocked); ok {
		k := c.ClockState()
		found.Clock = &status.Clock{
			Known: k.Known, Rough: k.Rough, AheadMS: k.Ahead.Milliseconds(),
			UncertaintyMS: k.Uncertainty.Milliseconds(), RoundTripMS: k.RoundTrip.Milliseconds(),
		}
	}
	return &found
}
