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

// A finder looks what there is to say of the store: whether it answers and if not why, and of
// which upstreams it does not know what was used. It says so in the log when that changes.
type finder struct {
	kind      string
	store     fleet.Store
	fleet     *fleet.Fleet
	upstreams func() map[string]*weir.Upstream
	metrics   *weirprom.Fleet
	log       *slog.Logger
	away      bool // the fleet went on without the store when it was looked last

	mu      sync.Mutex
	found   status.Found  // but for what is cold
	told    string        // the error that was logged last
	wasCold []status.Cold // as was told last
	unsure  time.Duration // since when the store's clock is not known well; 0 if it is
	warned  bool          // that was logged
}

const (
	lookTime  = 5 * time.Second
	firstLook = 500 * time.Millisecond // between looks at a store that was not reached
	lastLook  = 30 * time.Second
	everyLook = time.Minute
	everyCold = time.Second

	// clockTime is for how long the store's clock may be measured before that is worth a warning.
	clockTime = 10 * time.Second
)

// run looks until ctx ends.
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

// look looks once, and reports whether the store answered.
func (f *finder) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	_, _, err := f.store.Load(ctx, "", nil)
	why := f.fleet.Why() // one that is demoted lets itself be read, and not be written to
	f.away = why != nil
	f.note(cmp.Or(err, why))
	return err == nil
}

// cold is of which upstreams the store does not know what was used, as it has answered the fleet's
// beats: nothing is asked.
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

// coldOf returns, of the limits with each cold setting, the one for which it lasts longest until the store can grant all of it.
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

// note keeps what was found, and tells of what is new.
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

// tellCold tells of which upstreams the store is cold now, where that is new, and of which it is not any more.
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

// tellClock counts how well the store's clock is known, and warns where that stays bad.
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

// status is what is known now.
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
