package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// quick omits what matters only after a power cut.
var quick = filestore.Options{NoSync: true, Wait: 50 * time.Millisecond}

func open(t testing.TB, path string, o filestore.Options) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	return s
}

func closed(t testing.TB, s *filestore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "weir.db") }

func TestStore(t *testing.T) {
	s := open(t, file(t), quick)
	storetest.TestStore(t, func(testing.TB) fleet.Store { return s }, storetest.Hammer(300*time.Millisecond))
}

func TestStoreDriven(t *testing.T) {
	c := newHand()
	s := c.open(t, file(t))
	storetest.TestStore(t, func(testing.TB) fleet.Store { return s }, storetest.Driven(c.Advance), storetest.Hammer(500*time.Millisecond))
}

func TestStoreComputesAsMemoryDoes(t *testing.T) {
	for range 5 {
		c := newHand()
		s := c.open(t, file(t))
		s.KeepAll()
		storetest.Compare(t, fleet.NewMemory(c.Now), s, c.Advance, rand.Uint64(), 400)
	}
	c := newHand()
	s := c.open(t, file(t))
	s.KeepAll()
	storetest.CompareReturns(t, fleet.NewMemory(c.Now), s, c.Advance, rand.Uint64(), 1000)
}

// The test sometimes closes and opens the file.
func TestStoreComputesAsMemoryDoesAcrossRestarts(t *testing.T) {
	for range 5 {
		c := newHand()
		s := &restarted{t: t, clock: c, path: file(t)}
		storetest.Compare(t, &persistent{fleet.NewMemory(c.Now)}, s, c.Advance, rand.Uint64(), 300)
		closed(t, s.Store)
	}
}

// persistent is a Memory whose clients are not compared, because a restart forgets them.
type persistent struct{ *fleet.Memory }

func (persistent) Beat(context.Context, *fleet.Beat) (fleet.Standing, error) {
	return fleet.Standing{}, nil
}

// restarted is a store that is reopened every few calls.
type restarted struct {
	*filestore.Store
	t     *testing.T
	clock hand
	path  string
	calls int
}

func (r *restarted) Take(ctx context.Context, a *fleet.Ask) error {
	r.again()
	return r.Store.Take(ctx, a)
}

func (r *restarted) Swap(ctx context.Context, group string, x fleet.Record) (fleet.Record, bool, error) {
	r.again()
	return r.Store.Swap(ctx, group, x)
}

func (r *restarted) Beat(context.Context, *fleet.Beat) (fleet.Standing, error) {
	return fleet.Standing{}, nil
}

func (r *restarted) again() {
	r.t.Helper()
	if r.calls++; r.calls%7 != 1 {
		return
	}
	if r.Store != nil {
		closed(r.t, r.Store)
	}
	var err error
	if r.Store, err = filestore.OpenAt(r.path, quick, r.clock.Now); err != nil {
		r.t.Fatal(err)
	}
	r.KeepAll()
}

// A hand is a clock that a test moves, and that the stores of the test use.
type hand struct{ *storetest.Hand }

func newHand() hand { return hand{storetest.NewHand()} }

func (h hand) open(t testing.TB, path string) *filestore.Store {
	t.Helper()
	s, err := filestore.OpenAt(path, quick, h.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	return s
}

var (
	slow = &fleet.Rule{Name: "slow", Meter: bucket.MeterOf(bucket.Rate{Amount: 1, Per: 100 * time.Hour, Burst: 1_000_000})}
	fast = &fleet.Rule{Name: "fast", Meter: bucket.MeterOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 10})}
	roll = &fleet.Rule{Name: "roll", Shape: limit.Rolling, Amount: 10, Ring: bucket.RingOf(bucket.Window{Amount: 10, Per: time.Second})}
	day  = &fleet.Rule{Name: "day", Shape: limit.Calendar, Amount: 10}
)

func claim(now time.Time, r *fleet.Rule, cost int64) fleet.Claim {
	long := 24 * time.Hour
	if r == quota {
		long = 100 * 365 * 24 * time.Hour
	}
	start := now.Truncate(long)
	return fleet.Claim{Rule: r, Key: "k", Cost: cost, Windows: limit.Windows{Start: start, End: start.Add(long), Next: start.Add(2 * long)}}
}

func take(t testing.TB, s fleet.Store, copies int64, claims ...fleet.Claim) *fleet.Ask {
	t.Helper()
	a := &fleet.Ask{Group: "g", ID: rand.Uint64() | 1, Lane: 1, Copies: copies, Claims: claims}
	if err := s.Take(context.Background(), a); err != nil {
		t.Fatal(err)
	}
	return a
}

func left(t testing.TB, s fleet.Store, r *fleet.Rule) int64 {
	t.Helper()
	_, now, err := s.Load(context.Background(), "g", nil)
	if err != nil {
		t.Fatal(err)
	}
	return take(t, s, 0, claim(now, r, 1)).Grants[0].Left
}

func TestTwoStoresDoNotShareAFile(t *testing.T) {
	path := file(t)
	open(t, path, quick)
	_, err := filestore.Open(path, quick)
	if !errors.Is(err, filestore.ErrHeld) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "Redis") {
		t.Errorf("got %v, want ErrHeld with the file and what to do", err)
	}
}

func TestAClosedStoreSaysSo(t *testing.T) {
	s := open(t, file(t), quick)
	closed(t, s)
	ctx := context.Background()
	a := &fleet.Ask{Group: "g", ID: 1}
	_, errBeat := s.Beat(ctx, &fleet.Beat{Group: "g", Client: "c", Seq: 1, Silence: 1e6, Life: 1e6})
	_, _, errLoad := s.Load(ctx, "g", nil)
	_, _, errSwap := s.Swap(ctx, "g", fleet.Record{Name: "r"})
	for _, err := range []error{s.Take(ctx, a), errBeat, errLoad, errSwap} {
		if !errors.Is(err, filestore.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
	closed(t, s)
}

// Every caller gets an answer or an error.
func TestClosingAnswersEveryone(t *testing.T) {
	path := file(t)
	s := open(t, path, quick)
	var mu sync.Mutex
	var granted int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for {
				a := &fleet.Ask{Group: "g", ID: rand.Uint64() | 1, Lane: uint64(i), Copies: 1, Claims: []fleet.Claim{{Rule: slow, Key: "k", Cost: 1}}}
				if err := s.Take(context.Background(), a); err != nil {
					if !errors.Is(err, filestore.ErrClosed) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				if granted += a.Granted; granted == 300 {
					go s.Close()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	closed(t, s)
	if got := 1_000_000 - left(t, open(t, path, quick), slow); got != granted {
		t.Errorf("the file counts %d, %d were granted", got, granted)
	}
}

// The file is released for every caller of Close, and for repeated calls.
func TestAFileIsFreeWhenCloseReturns(t *testing.T) {
	path := file(t)
	for range 50 {
		s := open(t, path, quick)
		returned := make(chan error, 2)
		for range 2 {
			go func() { returned <- s.Close() }()
		}
		if err := <-returned; err != nil {
			t.Fatal(err)
		}
		closed(t, open(t, path, quick))
		<-returned
	}
}

func TestRecordsAreBounded(t *testing.T) {
	s := open(t, file(t), quick)
	_, _, err := s.Swap(context.Background(), "g", fleet.Record{Name: "r", Value: make([]byte, 1<<20+1), Keep: time.Hour})
	if err == nil {
		t.Error("a record of more than a megabyte was kept")
	}
	if _, ok, err := s.Swap(context.Background(), "g", fleet.Record{Name: "r", Value: make([]byte, 1<<20), Keep: time.Hour}); !ok || err != nil {
		t.Errorf("a record of a megabyte: %v, %v", ok, err)
	}
	a := &fleet.Ask{Group: "g", ID: 1, Claims: []fleet.Claim{{Rule: slow, Key: strings.Repeat("k", 40_000), Cost: 1}}}
	if err := s.Take(context.Background(), a); !errors.Is(err, fleet.ErrAsk) {
		t.Errorf("a key of 40,000 bytes: %v, want ErrAsk", err)
	}
}

// The file does not grow with expired entries.
func TestGarbageIsRemoved(t *testing.T) {
	c := newHand()
	path := file(t)
	s := c.open(t, path)
	most, size := 0, int64(0)
	for i := range 6000 {
		c.Advance(20 * time.Millisecond)
		k := claim(c.Now(), fast, 3)
		k.Key = fmt.Sprint(i)
		a := &fleet.Ask{Group: "g", ID: uint64(i + 1), Lane: uint64(i), Copies: 1, Claims: []fleet.Claim{k}}
		if err := s.Take(context.Background(), a); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if _, _, err := s.Swap(context.Background(), "g", fleet.Record{Name: fmt.Sprint(i), Value: []byte("x"), Keep: time.Second}); err != nil {
				t.Fatal(err)
			}
		}
		if i%500 == 0 {
			most = max(most, s.Entries())
		}
		if i == 4000 {
			size = sizeOf(t, path)
		}
	}
	// Lanes are kept for a minute, in which there are 3,000 asks.
	if most > 7000 {
		t.Errorf("%d entries at once", most)
	}
	if grown := sizeOf(t, path); grown > 2*size {
		t.Errorf("the file has grown from %d to %d bytes", size, grown)
	}
}

func sizeOf(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A caller that cannot wait for the disk returns. Its operation may or may not be executed.
func TestContextsAreKept(t *testing.T) {
	s := open(t, file(t), quick)
	var granted int64
	asked := int64(0)
	for range 300 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.Int64N(int64(300*time.Microsecond))))
		a := &fleet.Ask{Group: "g", ID: rand.Uint64() | 1, Lane: 1, Copies: 1, Claims: []fleet.Claim{{Rule: slow, Key: "k", Cost: 1}}}
		if err := s.Take(ctx, a); err == nil {
			granted += a.Granted
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		asked++
		cancel()
	}
	if gone := 1_000_000 - left(t, s, slow); gone < granted || gone > asked {
		t.Errorf("the file counts %d; %d of %d were granted", gone, granted, asked)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, o := range []filestore.Options{{}, {NoSync: true}} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("nosync=%v/callers=%d", o.NoSync, callers), func(b *testing.B) {
				s := open(b, file(b), o)
				var wg sync.WaitGroup
				for i := range callers {
					wg.Go(func() {
						for range b.N / callers {
							a := &fleet.Ask{Group: "g", ID: rand.Uint64() | 1, Lane: uint64(i), Copies: 1, Claims: []fleet.Claim{{Rule: slow, Key: "k", Cost: 1}}}
							if err := s.Take(context.Background(), a); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

func TestFileLetsLongCallsUseWhatABucketAllows(t *testing.T) {
	storetest.TestLongCalls(t, func(t *testing.T) ([]fleet.Store, func(d time.Duration)) {
		c := newHand()
		return []fleet.Store{c.open(t, file(t))}, c.Advance
	})
}
