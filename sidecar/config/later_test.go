package config

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

const laterLimit = "upstreams: {a: {url: 'http://a.test', limits: {all: {rate: 5/s, burst: 5}}, max_wait: 60s, routes: [{path: /, deliver: true}]}}"

// Direct calls go before waiting deliveries, by default, with and without a store. Deliveries get a twentieth of the
// capacity while direct calls take all they can get.
func TestDirectCallsGoBeforeDeliveries(t *testing.T) {
	for store, shared := range map[string]bool{"no store": false, "a store": true} {
		for _, direct := range []int{1, 15} {
			t.Run(fmt.Sprintf("%s, %d direct", store, direct), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { playLater(t, shared, direct) })
			})
		}
	}
}

func playLater(t *testing.T, shared bool, direct int) {
	f, err := Parse("weir.yaml", []byte("deliveries: {file: d.db}\n"+laterLimit), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var o weir.Options
	if shared {
		members := fleet.New(fleet.NewMemory(nil), fleet.Options{})
		defer func() { _ = members.Close(context.Background()) }()
		o.Fleet = members
	}
	u, err := weir.New("a", f.Upstreams[0].Policy, o)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var all sync.WaitGroup
	var went [2]atomic.Int64
	var longest atomic.Int64 // of direct calls
	call := func(later int, c weir.Call) {
		begin := time.Now()
		p, err := u.Acquire(ctx, c)
		if err != nil {
			if refused := (*weir.Refusal)(nil); errors.As(err, &refused) { // a delivery is retried with its group
				time.Sleep(time.Second)
			}
			return
		}
		if took := int64(time.Since(begin)); later == 0 {
			longest.Store(max(longest.Load(), took))
		}
		went[later].Add(1)
		time.Sleep(10 * time.Millisecond)
		p.Report(outcome.Outcome{Class: outcome.OK})
	}
	for range 64 { // as many as one worker handles
		all.Go(func() {
			for ctx.Err() == nil {
				call(1, weir.Call{Priority: limit.Low})
			}
		})
	}
	time.Sleep(time.Minute)
	went[1].Store(0)
	for range direct {
		all.Go(func() {
			for ctx.Err() == nil {
				call(0, weir.Call{})
				if direct == 1 {
					time.Sleep(5 * time.Second) // a caller that calls now and then
				}
			}
		})
	}
	all.Wait()
	mine, later := went[0].Load(), went[1].Load()
	t.Logf("%d direct calls, %d deliveries, the longest wait %v", mine, later, time.Duration(longest.Load()))
	if n := mine + later; n < 9*60*5*95/100 {
		t.Errorf("%d calls in 9 minutes at 5/s", n)
	}
	if direct == 1 && longest.Load() > int64(time.Second) {
		t.Errorf("a direct call waited %v behind deliveries", time.Duration(longest.Load()))
	}
	if share := float64(later) / float64(mine+later); direct > 1 && (share < 0.045 || share > 0.08) {
		t.Errorf("deliveries had %.1f%% of what went", 100*share)
	}
}

// This holds only where deliveries go. Elsewhere, calls wait in order of arrival.
func TestTurnsAreSettledWhereDeliveriesGo(t *testing.T) {
	for text, want := range map[string]bool{
		"deliveries: {file: d.db}\n" + laterLimit:                                                                                                      true,
		"upstreams: {a: {url: 'http://a.test'}}":                                                                                                       false,
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test'}}":                                                                             false,
		"deliveries: {file: d.db, callbacks: {c: {upstream: a, secrets_env: S}}}\nupstreams: {a: {url: 'http://a.test'}}":                              true,
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', keys: {user: \"header:U\"}, fair: user, routes: [{path: /, deliver: true}]}}": false,
		"deliveries: {file: d.db}\nupstreams: {a: {url: 'http://a.test', priority: \"header:P\", routes: [{path: /, deliver: true}]}}":                 false,
	} {
		f, err := Parse("weir.yaml", []byte(text), nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if p := f.Upstreams[0].Policy.Fair; (p.Weights.Normal == 19 && p.Weights.Low == 1) != want {
			t.Errorf("%s: %+v", text, p)
		}
	}
}
