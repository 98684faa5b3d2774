package logs

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// For random events, no kind passes more than its maximum in any second that begins with one of its lines. Passed and suppressed
// lines add up to all.
func TestSieveLosesNoCount(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 2))
	for range 2000 {
		s := newSieve(1 + r.IntN(4))
		now := time.Duration(0)
		var came, passed, told [3]int
		for range r.IntN(200) {
			now += time.Duration(r.IntN(400)) * time.Millisecond
			i := r.IntN(3)
			n, ok := s.pass(now, kind{message: "abc"[i : i+1]})
			came[i]++
			if ok {
				passed[i]++
				told[i] += n
			} else if n != 0 {
				t.Fatalf("seed %d: a suppressed line tells of %d", seed, n)
			}
		}
		now += time.Second
		for i := range came {
			if n, ok := s.pass(now, kind{message: "abc"[i : i+1]}); !ok || passed[i]+told[i]+n != came[i] {
				t.Fatalf("seed %d: %d came, %d passed, %d were told, and %d at last", seed, came[i], passed[i], told[i], n)
			}
		}
	}
}

func TestZeroSieveLetsAllThrough(t *testing.T) {
	s := newSieve(0)
	for range 1000 {
		if n, ok := s.pass(0, kind{}); !ok || n != 0 {
			t.Fatalf("suppressed %d, passed %v", n, ok)
		}
	}
}

func TestSieveHoldsItsBound(t *testing.T) {
	s, passed := newSieve(3), 0
	for ms := range 10_000 {
		if _, ok := s.pass(time.Duration(ms)*time.Millisecond, kind{}); ok {
			passed++
		}
	}
	if passed != 30 {
		t.Errorf("%d lines in 10 s, want 30", passed)
	}
}

// Concurrent lines obey the same bound, and none is lost.
func TestSieveHoldsItsBoundForManyAtOnce(t *testing.T) {
	const callers, each = 4, 10
	for second := range 200 {
		s, passed, told := newSieve(3), atomic.Int64{}, atomic.Int64{}
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for range callers {
			wg.Go(func() {
				<-begin
				for range each {
					if n, ok := s.pass(time.Duration(second), kind{}); ok {
						passed.Add(1)
						told.Add(int64(n))
					}
				}
			})
		}
		close(begin)
		wg.Wait()
		n, ok := s.pass(time.Duration(second)+time.Second, kind{})
		if came := passed.Load() + told.Load() + int64(n); !ok || passed.Load() != 3 || came != callers*each {
			t.Fatalf("%d lines, want 3; %d of %d are known of", passed.Load(), came, callers*each)
		}
	}
}

// A caller that read the state before the bound was reached, and enters later, writes nothing.
func TestSieveHoldsItsBoundForWhoHasLooked(t *testing.T) {
	s := newSieve(3)
	at := s.kinds.Get(kind{})
	for i := range 6 {
		if at.enter(0, 3) != (i < 3) {
			t.Errorf("line %d", i+1)
		}
	}
}

// TestLinesTellOfEveryRefusal checks that the written lines and the suppressed lines that they report add up to all refusals of
// an upstream, over all operations. At most as many refusals are formatted as lines may be written.
func TestLinesTellOfEveryRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, written := logger(slog.LevelInfo)
		events := Options{EachSecond: 3}.Events(log)
		seen, hear := 0, events.Refused
		events.Refused = func(e weir.Refused) time.Duration { seen++; return hear(e) }
		never := limit.Limit{Name: "never", Rate: bucket.Rate{Amount: 1, Per: 1000 * time.Hour}}
		u, err := weir.New("s3", weir.Policy{Limits: []limit.Limit{never}, MaxWait: -1, Operations: []weir.Operation{{Name: "put"}, {Name: "get"}}}, weir.Options{Events: events})
		if err != nil {
			t.Fatal(err)
		}
		came := -1 // the first call is not refused
		for i := range 50 {
			for range 10 {
				u.Try(weir.Call{Operation: []string{"put", "get"}[i%2]}, new(weir.Permit))
				came++
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		for _, operation := range []string{"put", "get"} {
			u.Try(weir.Call{Operation: operation}, new(weir.Permit))
			came++
		}
		told := 0
		for _, l := range lines(t, written) {
			told++
			if n, ok := l["suppressed"].(float64); ok {
				told += int(n)
			}
		}
		if told != came {
			t.Errorf("lines tell of %d refusals, want %d", told, came)
		}
		if seen > 6*8 {
			t.Errorf("%d of %d refusals were looked at, want 6 in each second", seen, came)
		}
	})
}
