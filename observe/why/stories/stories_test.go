package stories_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/observe/why"
	"github.com/seed1158cd35/weir/observe/why/stories"
)

// away is a store that can be made unavailable.
type away struct {
	stories.Store
	mu    sync.Mutex
	off   bool
	swaps int
}

var errAway = errors.New("away")

func (a *away) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	a.mu.Lock()
	off := a.off
	a.swaps++
	a.mu.Unlock()
	if off {
		return fleet.Record{}, false, errAway
	}
	return a.Store.Swap(ctx, group, r)
}

func (a *away) put(off bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.off = off
}

func story(id, upstream string, at time.Time) *why.Call {
	return &why.Call{ID: id, Upstream: upstream, Kind: why.Refused, At: at, Reason: "rate_limited", Limits: []why.Limit{{Name: "put"}}}
}

// found returns the upstreams of the calls that a book finds.
func found(t *testing.T, b *stories.Book, id string) string {
	t.Helper()
	calls, err := b.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, c := range calls {
		if c.ID != id {
			t.Errorf("asked for %s and told of %s", id, c.ID)
		}
		names = append(names, c.Weir+":"+c.Upstream)
	}
	return strings.Join(names, " ")
}

// Any process finds a call that another one wrote, also with several calls of the same ID. Of IDs that share a place, the later
// stays.
func TestAnyProcessFindsACall(t *testing.T) {
	redis, err := redisstore.Open(servers.Redis(t).URL(), redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Close() })
	for name, s := range map[string]fleet.Store{"memory": fleet.NewMemory(nil), "redis": redis} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			write := func(weir string, places int, all ...*why.Call) {
				b := stories.New(s, stories.Options{Weir: weir, Places: places})
				for _, c := range all {
					b.Put(c)
				}
				b.Close(t.Context())
			}
			reader := stories.New(s, stories.Options{})
			defer reader.Close(t.Context())
			write("a", 0, story("one", "s3", now))
			write("b", 0, story("one", "drs", now.Add(time.Second)), story("two", "s3", now))
			if got := found(t, reader, "one"); got != "a:s3 b:drs" {
				t.Errorf("one: %s", got)
			}
			if got := found(t, reader, "two") + "|" + found(t, reader, "three"); got != "b:s3|" {
				t.Errorf("two and three: %s", got)
			}
			narrow := stories.New(s, stories.Options{Places: 1})
			defer narrow.Close(t.Context())
			write("a", 1, story("x", "s3", now))
			write("a", 1, story("y", "s3", now))
			if got := found(t, narrow, "x") + "|" + found(t, narrow, "y"); got != "|a:s3" {
				t.Errorf("in one place: %s", got)
			}
		})
	}
}

// A place is bounded: of many calls of one ID the latest stay, and a call that is too long is shortened.
func TestAPlaceIsBounded(t *testing.T) {
	s := fleet.NewMemory(nil)
	b := stories.New(s, stories.Options{EachSecond: 1000})
	now := time.Now()
	for i := range 20 {
		b.Put(story("many", fmt.Sprint(i), now))
		for w := int64(0); w != int64(i+1); w, _ = b.Stats() {
			<-time.After(time.Millisecond)
		}
	}
	if got := found(t, b, "many"); got != ":12 :13 :14 :15 :16 :17 :18 :19" {
		t.Errorf("found %s", got)
	}
	long := story("long", "s3", now)
	for i := range 1000 {
		long.Limits = append(long.Limits, why.Limit{Name: fmt.Sprint(i), Rule: strings.Repeat("x", 100)})
	}
	b.Put(long)
	b.Close(t.Context())
	got, err := b.Find(t.Context(), "long")
	if err != nil || len(got) != 1 || got[0].Reason != "rate_limited" || len(got[0].Limits) > 0 || len(long.Limits) != 1001 {
		t.Errorf("%v, %v", got, err)
	}
}

// For any number of calls, few are written per second, a quarter of them of each kind.
func TestFewAreWrittenASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := stories.New(fleet.NewMemory(nil), stories.Options{EachSecond: 40})
		for range 10 {
			for _, kind := range []why.Kind{why.Refused, why.Failed} {
				for i := range 500 {
					c := story(fmt.Sprint(kind, i, time.Now().Unix()), "s3", time.Now())
					c.Kind = kind
					b.Put(c)
				}
			}
			time.Sleep(time.Second)
		}
		b.Close(t.Context())
		if written, dropped := b.Stats(); written != 200 || dropped != 0 {
			t.Errorf("written %d, dropped %d, want 200", written, dropped)
		}
	})
}

// During an outage of the store, a bounded number of calls waits for up to a minute. Dropped calls are counted, and callers do
// not wait.
func TestAStoreThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: fleet.NewMemory(nil), off: true}
		b := stories.New(s, stories.Options{EachSecond: 40})
		for i := range 10 {
			b.Put(story(fmt.Sprint("old", i), "s3", time.Now()))
		}
		time.Sleep(3 * time.Minute)
		if written, dropped := b.Stats(); written != 0 || dropped != 10 {
			t.Errorf("after three minutes: written %d, dropped %d", written, dropped)
		}
		for i := range 10 {
			b.Put(story(fmt.Sprint("new", i), "s3", time.Now()))
		}
		time.Sleep(10 * time.Second)
		s.put(false)
		time.Sleep(20 * time.Second)
		if written, _ := b.Stats(); written != 10 || found(t, b, "new3") != ":s3" {
			t.Errorf("the store is back: written %d", written)
		}
		s.put(true)
		for i := range 5000 {
			b.Put(story(fmt.Sprint(i), "s3", time.Now().Add(time.Duration(i)*time.Second)))
		}
		if _, dropped := b.Stats(); dropped < 5000-2048-4 {
			t.Errorf("more wait than there is room for: %d were dropped", dropped)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		b.Close(ctx)
		if s.swaps > 20000 {
			t.Errorf("%d attempts", s.swaps)
		}
	})
}
