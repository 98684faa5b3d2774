package drs_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// A tally counts the results of calls of StartRecovery.
type tally struct {
	mu      sync.Mutex
	good    map[string]bool // job IDs
	unknown []string        // tags
	twice   string          // a job that two calls returned
	failed  int
}

func (y *tally) call(ctx context.Context, c *drs.Client) {
	out, err := c.StartRecovery(ctx, recovering(oneServer))
	y.mu.Lock()
	defer y.mu.Unlock()
	lost, ok := errors.AsType[*drs.UnknownError](err)
	switch {
	case ok:
		y.unknown = append(y.unknown, lost.Tag)
	case err != nil:
		y.failed++
	case y.good[*out.Job.JobID]:
		y.twice = *out.Job.JobID
	default:
		y.good[*out.Job.JobID] = true
	}
}

// With random faults, there is one recovery for each successful call, at most one for each call with an unknown result, and none
// for other calls.
func TestNoRecoveryIsStartedTwice(t *testing.T) {
	var good, unknown, failed, faults atomic.Int64
	t.Run("histories", func(t *testing.T) {
		for range 2 { // halves, one for each of two cores
			t.Run("half", func(t *testing.T) {
				t.Parallel()
				for range raced.Of(500, 25) {
					seed := rand.Uint64()
					synctest.Test(t, func(t *testing.T) {
						y := history(t, seed, &faults)
						good.Add(int64(len(y.good)))
						unknown.Add(int64(len(y.unknown)))
						failed.Add(int64(y.failed))
					})
				}
			})
		}
	})
	t.Logf("%d faults; %d recoveries, %d calls that do not know, %d that failed", faults.Load(), good.Load(), unknown.Load(), failed.Load())
	if least := int64(raced.Of(1000, 50)); good.Load() < least || faults.Load() < least {
		t.Errorf("%d recoveries and %d faults are too few to show anything", good.Load(), faults.Load())
	}
}

func history(t *testing.T, seed uint64, faults *atomic.Int64) *tally {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 1))
	pick := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	var calm atomic.Bool
	server := &drstest.Server{Rate: 10, Burst: 20, PageSize: 1 + pick(3), Listed: time.Duration(pick(8)) * time.Second}
	bad := 2 + pick(8) // of ten requests
	server.Fault = func(operation string) drstest.Fault {
		if calm.Load() || pick(10) >= bad {
			return drstest.None
		}
		faults.Add(1)
		f := drstest.Fault(pick(int(drstest.Faults)))
		if f == drstest.EmptyAfter && operation == "DescribeJobs" {
			return drstest.LostAfter // StartRecovery trusts a complete list without the job
		}
		return f
	}
	server.Delay = func(string) time.Duration { return time.Duration(pick(300)) * time.Millisecond }
	cfg, end := inside(server)
	defer end()
	y := &tally{good: map[string]bool{}}
	var wg sync.WaitGroup
	for range 2 {
		c := drs.New(cfg, drs.Options{Timeout: 5 * time.Second, LookFor: 20 * time.Second})
		wg.Go(func() {
			for range 1 + pick(2) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+pick(240))*time.Second)
				y.call(ctx, c)
				cancel()
			}
		})
	}
	wg.Wait()
	calm.Store(true)
	time.Sleep(10 * time.Second)
	y.check(t, seed, server, drs.New(cfg, drs.Options{}))
	return y
}

// check compares the results of the calls with the actions of the server.
func (y *tally) check(t *testing.T, seed uint64, server *drstest.Server, c *drs.Client) {
	late := 0
	for _, tag := range y.unknown {
		job, err := c.Recovery(t.Context(), tag)
		if err != nil {
			t.Fatalf("seed %#x: %v", seed, err)
		}
		if job != nil {
			late++
		}
	}
	if y.twice != "" || server.Recoveries() != len(y.good)+late {
		t.Fatalf("seed %#x: %d recoveries for %d calls that succeeded and %d of %d that did not know; twice: %q",
			seed, server.Recoveries(), len(y.good), late, len(y.unknown), y.twice)
	}
}
