package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
)

// ages makes the keys of a server older by ARGV milliseconds, except the responses of lanes. With a driven clock,
// keys would not expire otherwise.
const ages = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left > 0 and not string.find(key, '}a:', 1, true) then
    redis.call('PEXPIRE', key, string.format('%.0f', left - ARGV[1]))
  end
end
return 'done'`

// aging returns a store whose keys also expire by the clock of the test.
func aging(t testing.TB) (s *redisstore.Store, clock *atomic.Int64, advance func(d time.Duration)) {
	srv := servers.Redis(t)
	s, clock = open(t, srv.URL()), new(atomic.Int64)
	clock.Store(time.Date(2026, 3, 8, 9, 59, 59, 999_999_000, time.UTC).UnixMicro())
	redisstore.Drive(s, clock)
	begin, driven := time.Now(), time.Duration(0)
	var aged time.Duration
	return s, clock, func(d time.Duration) {
		clock.Add(d.Microseconds())
		driven += d
		older := (driven - time.Since(begin) - aged).Truncate(time.Millisecond) // they also age by themselves
		if aged += older; older == 0 {
			return
		}
		if _, err := srv.Do("EVAL", ages, "0", fmt.Sprint(older.Milliseconds())); err != nil {
			t.Fatal(err)
		}
	}
}

// lonely is a store of a group without parts, in which each limit has its own keys. It forgets the remainder of a
// window before the window becomes longer.
type lonely struct {
	fleet.Store
	was map[string]*fleet.Rule
}

func (l lonely) Take(ctx context.Context, a *fleet.Ask) error {
	own := *a
	own.Claims, own.Settle = slices.Clone(a.Claims), slices.Clone(a.Settle)
	for i := range own.Claims {
		k := &own.Claims[i]
		k.Key += k.Rule.Name
		l.forget(ctx, a.Group, k.Key, k.Rule)
	}
	for i := range own.Settle {
		k := &own.Settle[i]
		k.Key += k.Rule.Name
		l.forget(ctx, a.Group, k.Key, k.Rule)
		if k.Rule.Shape == limit.Bucket { // a mark is valid after a change only if the limit was forgotten
			k.Back = 0
		}
	}
	err := l.Store.Take(ctx, &own)
	a.Now, a.Granted, a.Grants = own.Now, own.Granted, own.Grants
	return err
}

func (l lonely) forget(ctx context.Context, group, key string, r *fleet.Rule) {
	if r.Shape != limit.Rolling {
		return
	}
	if old := l.was[key]; old != nil && old != r {
		look := &fleet.Ask{Group: group, ID: 1, Lane: rand.Uint64(), Claims: []fleet.Claim{{Rule: old, Key: key}}}
		if err := l.Store.Take(ctx, look); err != nil {
			panic(err)
		}
	}
	l.was[key] = r
}

func (lonely) Beat(context.Context, *fleet.Beat) (fleet.Standing, error) {
	return fleet.Standing{}, nil
}

// Keys that expire contain no information that a limit still needs.
func TestNothingIsLostWithTheKeysThatExpire(t *testing.T) {
	t.Parallel()
	s, clock, advance := aging(t)
	for seed := range uint64(campaign.Histories(20, 50)) {
		m := fleet.NewMemory(func() time.Time { return time.UnixMicro(clock.Load()) })
		storetest.Compare(t, lonely{m, make(map[string]*fleet.Rule)}, lonely{startFull(s), make(map[string]*fleet.Rule)}, advance, seed, 300)
	}
}

// A hold is not forgotten before the units that it concerns have drained.
func TestHoldsThatExpire(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	t.Parallel()
	s, _, advance := aging(t)
	f := startFull(s)
	storetest.TestHolds(t, func(testing.TB) fleet.Store { return f }, storetest.Driven(advance))
}

// The usage of a window counts in the longer window that replaces it, even if no more units are granted.
func TestWhatWentCountsInALongerWindow(t *testing.T) {
	s, _, advance := aging(t)
	f := startFull(s)
	a := ask(claim(rollingOf("r", 5, time.Minute), 1))
	if a.Copies = 5; take(t, f, a).Granted != 5 {
		t.Fatal("a new limit is not full")
	}
	longer := claim(rollingOf("r", 5, time.Hour), 1)
	for past := time.Duration(0); past < 59*time.Minute; past += 5 * time.Minute {
		if got := left(t, f, longer); got != 0 {
			t.Fatalf("%v later %d are left of 5 an hour, want none", past, got)
		}
		advance(5 * time.Minute)
	}
}

// After a change of its time zone or period, a quota counts the usage since the beginning of the new window.
func TestWhatWentCountsInWindowsThatOverlap(t *testing.T) {
	s, clock, advance := aging(t)
	f := startFull(s)
	begin := time.UnixMicro(clock.Load())
	at := func(from time.Duration) fleet.Claim {
		k := claim(fixedOf("q", 5), 1)
		k.Windows = limit.Windows{Start: begin.Add(from), End: begin.Add(from + 24*time.Hour), Next: begin.Add(from + 48*time.Hour)}
		return k
	}
	advance(20 * time.Hour)
	a := ask(at(0))
	if a.Copies = 5; take(t, f, a).Granted != 5 {
		t.Fatal("a new limit is not full")
	}
	advance(8 * time.Hour) // the window has ended, and its record has expired
	if got := left(t, f, at(8*time.Hour)); got != 0 {
		t.Errorf("%d left of 5 in a window in which 5 went, want none", got)
	}
}
