package redisstore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// open returns a connected store on a server or its cluster. One attempt has half a second, but a machine may stall
// for longer.
func open(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s := unconnected(t, url)
	var err error
	for range 20 {
		if _, _, err = s.Load(t.Context(), "", nil); err == nil {
			return s
		}
	}
	t.Fatal(err)
	return nil
}

// unconnected returns a store immediately after Open.
func unconnected(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(url, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, s)
}

func closing(t testing.TB, s *redisstore.Store) *redisstore.Store {
	t.Cleanup(func() { s.Close() })
	return s
}

// full is a store that declares every group new, so that limits start full.
type full struct {
	*redisstore.Store
	known *sync.Map
}

func startFull(s *redisstore.Store) full { return full{s, new(sync.Map)} }

func (f full) Take(ctx context.Context, a *fleet.Ask) error {
	f.know(ctx, a.Group)
	return f.Store.Take(ctx, a)
}

func (f full) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	f.know(ctx, b.Group)
	return f.Store.Beat(ctx, b)
}

func (f full) know(ctx context.Context, group string) {
	once, _ := f.known.LoadOrStore(group, new(sync.Once))
	once.(*sync.Once).Do(func() {
		begin, again := time.Now(), time.NewTicker(10*time.Millisecond)
		defer again.Stop()
		for {
			err := f.Init(context.WithoutCancel(ctx), group)
			if err == nil {
				return
			}
			if time.Since(begin) > 30*time.Second { // on a busy machine the first connection may fail
				panic(err)
			}
			<-again.C
		}
	})
}

// driven returns a store whose scripts use a clock of the test.
func driven(t testing.TB) (s *redisstore.Store, clock *atomic.Int64, advance func(d time.Duration)) {
	return drivenOn(t, servers.Redis(t))
}

func drivenOn(t testing.TB, server *servers.Server) (s *redisstore.Store, clock *atomic.Int64, advance func(d time.Duration)) {
	s, clock = open(t, server.URL()), new(atomic.Int64)
	clock.Store(time.Date(2026, 3, 8, 9, 59, 59, 999_999_000, time.UTC).UnixMicro())
	redisstore.Drive(s, clock)
	return s, clock, func(d time.Duration) { clock.Add(d.Microseconds()) }
}

// conform checks a store that runs in real time against the contract.
func conform(t *testing.T, s *redisstore.Store) {
	f := startFull(s)
	storetest.TestStore(t, func(testing.TB) fleet.Store { return f }, storetest.Hammer(1500*time.Millisecond))
}

func TestStore(t *testing.T) {
	conform(t, open(t, servers.Redis(t).URL()))
}

// Calls that run alone and end soon use their own connection.
func TestStoreOfCallsThatEndSoon(t *testing.T) {
	s := open(t, servers.Redis(t).URL())
	f := startFull(s)
	storetest.TestStore(t, func(testing.TB) fleet.Store { return ways["alone"](f) }, storetest.Hammer(500*time.Millisecond))
}

func TestStoreDriven(t *testing.T) {
	server := servers.Redis(t)
	s, _, advance := drivenOn(t, server)
	f := startFull(s)
	storetest.TestStore(t, func(testing.TB) fleet.Store { return f }, storetest.Driven(advance), storetest.Emptied(emptying(server)))
}

// emptying returns a function that deletes all data of the server.
func emptying(server *servers.Server) func(t testing.TB, group string) {
	return func(t testing.TB, _ string) {
		if _, err := server.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that lost its data counts exactly the parts as out that no process shows, as fleet.Members does.
func TestAnEmptiedServerCountsAsMembersDo(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	s, _, advance := drivenOn(t, server)
	shown := 0
	for seed := range uint64(campaign.Histories(20, 250)) {
		shown += storetest.CompareEmptied(t, s, emptying(server), advance, seed, 300)
	}
	if t.Logf("%d parts were shown", shown); shown < 20 {
		t.Errorf("%d parts were shown", shown)
	}
}

// The test runs 40 random histories of 300 steps, or 400 histories if WEIR_LONG is set.
func TestScriptCountsAsMemory(t *testing.T) {
	t.Parallel()
	s, clock, advance := driven(t)
	for seed := range uint64(campaign.Histories(40, 400)) {
		m := fleet.NewMemory(func() time.Time { return time.UnixMicro(clock.Load()) })
		storetest.Compare(t, m, startFull(s), advance, seed, 300)
	}
	for seed := range uint64(campaign.Histories(8, 100)) {
		m := fleet.NewMemory(func() time.Time { return time.UnixMicro(clock.Load()) })
		storetest.CompareReturns(t, m, startFull(s), advance, seed, 1500)
	}
}

func TestServerLetsLongCallsUseWhatABucketAllows(t *testing.T) {
	server := servers.Redis(t)
	storetest.TestLongCalls(t, func(t *testing.T) ([]fleet.Store, func(d time.Duration)) {
		s, _, advance := drivenOn(t, server)
		return []fleet.Store{startFull(s)}, advance
	})
}
