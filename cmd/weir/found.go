package main

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/status"
)

// A finder looks what there is to say of the store: whether it answers and if not why, and of
// which upstreams it does not know what was used. It says so in the log when that changes.
type finder struct {
	kind      string
	store     limit.Store
	upstreams func() map[string]*weir.Upstream
	metrics   *weirprom.Fleet
	log       *slog.Logger

	mu    sync.Mutex
	found status.Found
	told  string // the error that was logged last
}

const (
	lookTime  = 5 * time.Second
	firstLook = 500 * time.Millisecond // between looks at a store that was not reached
	lastLook  = 30 * time.Second
	everyLook = time.Minute
)

// run looks until ctx ends.
func (f *finder) run(ctx context.Context) {
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		if f.look(ctx) {
			wait = everyLook
		}
		if clock.System.Sleep(ctx, wait) != nil {
			return
		}
		if wait == everyLook {
			wait = firstLook / 2
		}
	}
}

// look looks once, and reports whether the store answered.
func (f *finder) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	_, now, err := f.store.Load(ctx, "", nil)
	var cold []status.Cold
	if err == nil {
		cold, err = f.cold(ctx, now)
	}
	f.note(cold, err)
	return err == nil
}

// cold is of which upstreams the store does not know what was used.
func (f *finder) cold(ctx context.Context, now time.Time) (all []status.Cold, err error) {
	s, ok := f.store.(interface {
		Known(ctx context.Context, group string) (since time.Time, ok bool, err error)
	})
	if !ok {
		return nil, nil
	}
	ups := f.upstreams()
	for _, name := range slices.Sorted(maps.Keys(ups)) {
		since, known, err := s.Known(ctx, name)
		if err != nil {
			return nil, err
		}
		if !known {
			since = now
		}
		if since.IsZero() {
			continue
		}
		if c, ok := coldOf(ups[name].Policy().Limits, since, now); ok {
			c.Upstream = name
			all = append(all, c)
		}
	}
	return all, nil
}

// coldOf is the limit for which it lasts longest that the store has known nothing before an
// instant.
func coldOf(limits []limit.Limit, since, now time.Time) (c status.Cold, ok bool) {
	for i := range limits {
		l := &limits[i]
		if !l.Shares() {
			continue
		}
		if lasts := warm(l, since).Sub(now).Milliseconds(); lasts > c.LastsMS {
			c.Limit, c.Quota, c.LastsMS = cmp.Or(l.Name, l.Unit), l.Shape == limit.Fixed, lasts
		}
	}
	return c, c.LastsMS > 0
}

// unknown is for how long a store that was emptied keeps back what processes may hold that it
// does not know.
const unknown = 5 * time.Minute

// warm is when a store that has known a limit since an instant can grant all of it.
func warm(l *limit.Limit, since time.Time) time.Time {
	switch l.Shape {
	case limit.Fixed:
		zone, _ := bucket.Zone(l.Zone) // it is known: the limit is in use
		_, end := bucket.Calendar{Every: l.Every, Zone: zone}.Window(since)
		return end
	case limit.Rolling:
		return since.Add(unknown + l.Per)
	}
	return since.Add(unknown + time.Duration(float64(l.Full())/l.PerSecond()*float64(time.Second)))
}

// note keeps what was found, and tells of what is new.
func (f *finder) note(cold []status.Cold, err error) {
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
	f.found.Reached, f.found.Error, f.found.Cold, f.told = true, "", cold, ""
	f.metrics.Reached()
	if !was.Reached || was.Error != "" {
		f.log.Info("store reached", "store", f.kind, "looks", f.found.Looks)
	}
	f.tellCold(was.Cold, cold)
}

func (f *finder) tellCold(was, is []status.Cold) {
	for _, c := range was {
		f.metrics.Cold(c.Upstream, false)
		if !among(is, c.Upstream) {
			f.log.Info("store knows limits", "store", f.kind, "upstream", c.Upstream)
		}
	}
	for _, c := range is {
		f.metrics.Cold(c.Upstream, true)
		if !among(was, c.Upstream) {
			f.log.Warn("store is cold", "store", f.kind, "upstream", c.Upstream, "limit", c.Limit, "quota", c.Quota,
				"at_most", (time.Duration(c.LastsMS) * time.Millisecond).String(),
				"help", "the store does not know what was used of the limits, and counts all as used up; if nobody used them, run weir store init")
		}
	}
}

func among(all []status.Cold, upstream string) bool {
	return slices.ContainsFunc(all, func(c status.Cold) bool { return c.Upstream == upstream })
}

// look is what was found last.
func (f *finder) status() *status.Found {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.found
	return &found
}
