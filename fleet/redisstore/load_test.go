package redisstore_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// Eight clients with eight goroutines each take from one bucket as fast as they can. The test checks windows of
// every length by the server's clock.
func TestEightProcessesAreNeverOver(t *testing.T) {
	srv := servers.Redis(t)
	const amount, burst = 1000, 100
	rule := bucketOf("b", amount, time.Second, burst)
	var mu sync.Mutex
	grants := make(map[int64]int64)
	var begin, end time.Time
	var wg sync.WaitGroup
	for client := range 8 {
		s := startFull(open(t, srv.URL()))
		left(t, s, claim(rule, 1))
		for g := range 8 {
			wg.Go(func() {
				for first := (time.Time{}); ; {
					a := ask(claim(rule, 1))
					a.Lane, a.Copies = uint64(client*8+g), int64(1+g%3)
					if err := s.Take(t.Context(), a); err != nil {
						t.Error(err)
						return
					}
					if first.IsZero() {
						first = a.Now
					}
					mu.Lock()
					grants[a.Now.UnixMicro()] += a.Granted
					if begin.IsZero() || a.Now.Before(begin) {
						begin = a.Now
					}
					if a.Granted > 0 {
						end = later(end, a.Now)
					}
					mu.Unlock()
					if a.Now.Sub(first) > 700*time.Millisecond {
						return
					}
				}
			})
		}
	}
	wg.Wait()
	total := never(t, grants, amount, burst)
	could := burst + amount*end.Sub(begin).Seconds()
	if t.Logf("%d of %.0f used", total, could); total <= burst { // the usage also depends on the machine
		t.Errorf("%d of %.0f used", total, could)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// never checks grants by instant, and returns their sum. Each unit fills a bucket by 1e6, and each microsecond
// drains it by amount.
func never(t *testing.T, grants map[int64]int64, amount, burst int64) (total int64) {
	t.Helper()
	var instants []int64
	for at := range grants {
		instants = append(instants, at)
	}
	slices.Sort(instants)
	var level, last int64
	for _, at := range instants {
		level = max(0, level-amount*(at-last)) + grants[at]*1e6
		if last = at; level > burst*1e6+amount {
			t.Fatalf("%d units too many at %d us", level/1e6-burst, at)
		}
		total += grants[at]
	}
	return total
}

func TestDecisionAllocatesNothing(t *testing.T) {
	s := open(t, servers.Redis(t).URL())
	a := ask(claim(bucketOf("b", 1000, time.Second, 1000), 1), claim(bucketOf("c", 1000, time.Second, 1000), 1))
	n := testing.AllocsPerRun(500, func() {
		a.ID++
		if err := s.Take(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0.5 && !raced.Detector { // the race detector allocates
		t.Errorf("%v allocations for a decision, want none", n)
	}
}
