package serve

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/observe/why"
	"github.com/seed1158cd35/weir/observe/why/stories"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// keptCalls stores records of calls that explain their results: in memory, in the fleet's store if there is one, and as
// counts per second.
type keptCalls struct {
	*why.Keeper
	seconds why.Seconds
	file    atomic.Pointer[config.File]  // the file in force
	store   atomic.Pointer[stories.Book] // nil if there is none
	all     func() map[string]*weir.Upstream
}

func newKeptCalls(file *config.File, all func() map[string]*weir.Upstream) *keptCalls {
	k := &keptCalls{all: all}
	k.file.Store(file)
	k.Keeper = why.New(why.Options{Where: func(upstream, field string) string { return k.file.Load().Where(upstream, field) }, Kept: k.kept})
	return k
}

// Events returns the events with which upstreams must be created.
func (k *keptCalls) Events() weir.Events {
	e := k.Keeper.Events()
	e.Counts = k.seconds.Counts
	return e
}

func (k *keptCalls) kept(c *why.Call) {
	if b := k.store.Load(); b != nil {
		b.Put(c)
	}
}

// shares starts writing calls to the fleet's store, if other processes use it.
func (k *keptCalls) shares(s stories.Store, kind string, registry prometheus.Registerer) {
	o := stories.Options{Weir: process()}
	switch kind {
	case "redis":
	case "dynamodb": // each write costs money
		o.EachSecond = 10
	default:
		return
	}
	b := stories.New(s, o)
	weirprom.Stories(registry, b.Stats)
	k.store.Store(b)
}

// run counts the decisions of each second, until ctx ends.
func (k *keptCalls) run(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			k.sample(now)
		}
	}
}

func (k *keptCalls) sample(now time.Time) {
	all := k.all()
	k.seconds.Sample(now, func(upstream string) bool { return all[upstream] != nil })
}

// close writes the remaining records to the store, for a limited time.
func (k *keptCalls) close() {
	if b := k.store.Swap(nil); b != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaving)
		defer cancel()
		b.Close(ctx)
	}
}

// Find returns the records of the calls with an ID, from this process and the store.
func (k *keptCalls) Find(ctx context.Context, id string) ([]*why.Call, error) {
	calls := k.Keeper.Find(id)
	b := k.store.Load()
	if b == nil {
		return calls, nil
	}
	others, err := b.Find(ctx, id)
	for _, c := range others {
		if !slices.ContainsFunc(calls, func(own *why.Call) bool { return own.At.Equal(c.At) && own.Upstream == c.Upstream }) {
			calls = append(calls, c)
		}
	}
	slices.SortStableFunc(calls, func(a, b *why.Call) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Upstream, b.Upstream)) })
	return calls, err
}

// In returns the decisions of a second, with the current rules of the limits.
func (k *keptCalls) In(second time.Time) ([]why.Line, bool) {
	now := time.Now()
	k.sample(now)
	lines, ok := k.seconds.In(second, now)
	all, file := k.all(), k.file.Load()
	for i := range lines {
		l := &lines[i]
		u := all[l.Upstream]
		if l.Limit == "" || u == nil {
			continue
		}
		for _, rule := range u.Policy().Limits {
			if rule.Name == l.Limit {
				l.Rule, l.By, l.At = rule.String(), rule.Scope, file.Where(l.Upstream, "limits."+l.Limit)
			}
		}
	}
	return lines, ok
}
