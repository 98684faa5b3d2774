package dynamostore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sort"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// roundTrips are round trips to the table in milliseconds, from the same machine to another continent.
var roundTrips = []time.Duration{0, 1, 5, 8, 18, 20, 26, 30, 40, 50, 150}

// A farClient is a client of a fake with a round trip.
type farClient struct {
	*fake
	roundTrip time.Duration
}

func (c farClient) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(c.roundTrip / 2)
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	a, err := c.fake.Do(r)
	time.Sleep(c.roundTrip / 2)
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return a, err
}

// A farProcess is a process that calls an upstream. A distant table contains the upstream's limits.
type farProcess struct {
	store *Store
	fleet *fleet.Fleet
	*weir.Upstream
}

func newFarProcess(t *testing.T, f *fake, roundTrip time.Duration, limits ...limit.Limit) *farProcess {
	t.Helper()
	s := New(clientAt("http://fake", farClient{f, roundTrip}), "weir", Options{})
	p := &farProcess{store: s, fleet: fleet.New(s, fleet.Options{})}
	p.fleet.Start()
	u, err := weir.New("up", weir.Policy{Limits: limits}, weir.Options{Fleet: p.fleet})
	if err != nil {
		t.Fatal(err)
	}
	p.Upstream = u
	t.Cleanup(p.close)
	return p
}

func (p *farProcess) close() {
	p.Close()
	_ = p.fleet.Close(context.Background())
	_ = p.store.Close()
}

// acquires and tries each make one call.
func (p *farProcess) acquires() error {
	permit, err := p.Acquire(context.Background(), weir.Call{})
	if err == nil {
		permit.Report(outcome.Outcome{Class: outcome.OK})
	}
	return err
}

func (p *farProcess) tries() error {
	var permit weir.Permit
	if d := p.Try(weir.Call{}, &permit); !d.Allowed {
		return fmt.Errorf("refused: %v, retry after %v", d.Reason, d.RetryAfter)
	}
	permit.Report(outcome.Outcome{Class: outcome.OK})
	return nil
}

var farLimits = []limit.Limit{
	{Name: "bucket", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}},
	{Name: "rolling", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 6000, Per: time.Minute}},
	{Name: "quota", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day},
}

// The first process creates the items, and later processes find them.
func TestProcessFarFromTableServesFirstCallWithinThreeRoundTrips(t *testing.T) {
	for _, ms := range roundTrips {
		roundTrip := ms * time.Millisecond
		for _, calls := range []struct {
			name string
			make func(*farProcess) error
		}{{"Acquire", (*farProcess).acquires}, {"Try", (*farProcess).tries}} {
			t.Run(fmt.Sprint(calls.name, " at ", roundTrip), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(time.Now)
					for i := range 3 {
						time.Sleep(1234567 * time.Microsecond)
						p := newFarProcess(t, f, roundTrip, farLimits...)
						start := time.Now()
						err := calls.make(p)
						took, most := time.Since(start), 3*roundTrip+100*time.Millisecond
						if err != nil || took > most {
							t.Errorf("process %d: the first call took %v, want %v at most: %v", i, took, most, err)
						}
						time.Sleep(2500 * time.Millisecond)
						for n := range 10 {
							if err := p.acquires(); err != nil {
								t.Errorf("process %d, call %d: %v", i, n, err)
							}
						}
						if n := p.store.Stats().Requests; n > 150 {
							t.Errorf("process %d: %d requests for eleven calls", i, n)
						} else {
							t.Logf("process %d: %d requests", i, n)
						}
					}
				})
			})
		}
	}
}

// A process starts while two processes use a limit, at any instant of the second and of the limit's window. For about one
// process in 70, nearly all of a bucket is out as parts of the two processes, and the new process does not know the time
// well enough to use the rest. It then waits about a second, until a process gives up a part. The number of such cases
// also depends on the order of goroutines, so the test allows a few more.
func TestProcessStartsFarFromTableWhileOthersUseTheLimit(t *testing.T) {
	histories, late := campaign.Histories(8, 200), 0
	for seed := range uint64(histories) {
		for _, calls := range []struct {
			name string
			make func(*farProcess) error
		}{{"Acquire", (*farProcess).acquires}, {"Try", (*farProcess).tries}} {
			t.Run(fmt.Sprint(calls.name, " ", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 29))
					roundTrip := time.Duration(18+rng.IntN(33)) * time.Millisecond
					f := newFake(time.Now)
					l := farLimits[seed%2]
					perSecond := 1 + rng.IntN(40) // calls of each of the first two processes
					time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
					var calling sync.WaitGroup
					end := time.Now().Add(5*time.Second + time.Duration(rng.Int64N(int64(40*time.Second))))
					for range 2 {
						p, jitter := newFarProcess(t, f, roundTrip, l), rand.New(rand.NewPCG(rng.Uint64(), 29))
						calling.Go(func() {
							for time.Now().Before(end) {
								_ = p.acquires()
								time.Sleep(time.Second/time.Duration(perSecond) - time.Duration(jitter.Int64N(int64(time.Millisecond))))
							}
						})
						time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
					}
					time.Sleep(time.Until(end) - time.Duration(rng.Int64N(int64(time.Second))))
					p := newFarProcess(t, f, roundTrip, l)
					start := time.Now()
					err := calls.make(p)
					took, most := time.Since(start), 3*roundTrip+100*time.Millisecond
					if err != nil || took > most {
						t.Logf("%v away, beside %d a second: the first call took %v, want %v at most: %v", roundTrip, 2*perSecond, took, most, err)
						late++
					}
					calling.Wait()
				})
			})
		}
	}
	if calls := 2 * histories; late > 2+calls/20 {
		t.Errorf("%d of %d first calls were late or refused, want %d at most", late, calls, 2+calls/20)
	}
}

// Stores change one item at the same time, so updates fail and are sent again until the ask ends. An update whose
// answer would be too late is not sent. So the units that the table counts are those that the stores were granted.
func TestUpdatesWhoseAnswersWouldBeTooLateGrantNothing(t *testing.T) {
	rule := &fleet.Rule{Name: "l", Shape: limit.Rolling, Amount: 100_000, Ring: bucket.RingOf(bucket.Window{Amount: 100_000, Per: time.Hour})}
	for _, roundTrip := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(time.Now)
				var stores []*Store
				for range 4 {
					s := New(clientAt("http://fake", farClient{f, roundTrip}), "weir", Options{})
					defer s.Close()
					if err := take(t, s, rollingAsk(rule, 1)); err != nil { // it also learns the time
						t.Fatal(err)
					}
					stores = append(stores, s)
				}
				granted, failed := int64(len(stores)), 0
				var mu sync.Mutex
				var asking sync.WaitGroup
				for i, s := range stores {
					rng := rand.New(rand.NewPCG(uint64(i), uint64(roundTrip)))
					asking.Go(func() {
						for range 100 {
							ctx, cancel := context.WithTimeout(t.Context(), 2*roundTrip+time.Duration(rng.Int64N(int64(4*roundTrip))))
							a := rollingAsk(rule, 1)
							err := s.Take(ctx, a)
							cancel()
							mu.Lock()
							if granted += a.Granted; err != nil {
								failed++
							}
							mu.Unlock()
							time.Sleep(time.Duration(rng.Int64N(int64(roundTrip))))
						}
					})
				}
				asking.Wait()
				look := rollingAsk(rule, 0)
				if err := take(t, stores[0], look); err != nil {
					t.Fatal(err)
				}
				if used := rule.Amount - look.Grants[0].Left; used != granted {
					t.Errorf("the table counts %d units, %d were granted", used, granted)
				}
				if t.Logf("%d of 400 asks failed", failed); failed == 0 {
					t.Error("no ask failed")
				}
			})
		})
	}
}

func rollingAsk(rule *fleet.Rule, copies int64) *fleet.Ask {
	a := ask(copies, "")
	a.Claims[0].Rule = rule
	return a
}

// Processes with long round trips want at least twice the limit.
func TestProcessesFarFromTableUseTheLimitAndNoMore(t *testing.T) {
	const rate, callers = 100, 240
	for _, far := range []struct {
		roundTrip time.Duration
		processes int
		window    time.Duration // of the rolling limit, in seconds; the loss caused by the round trip does not depend on it
		phase     time.Duration // start of the processes within the second, in milliseconds; it determines how well they know the time at first
	}{{20, 3, 5, 0}, {50, 3, 5, 0}, {50, 1, 5, 337}, {50, 3, 5, 337}, {150, 1, 20, 0}, {150, 1, 20, 337}, {150, 3, 20, 0}, {150, 3, 20, 337}, {150, 3, 20, 778}} {
		roundTrip, window := far.roundTrip*time.Millisecond, far.window*time.Second
		for _, l := range []limit.Limit{
			{Name: "bucket", Rate: bucket.Rate{Amount: rate, Per: time.Second, Burst: rate}},
			{Name: "rolling", Shape: limit.Rolling, Rate: bucket.Rate{Amount: rate * int64(far.window), Per: window}},
		} {
			t.Run(fmt.Sprint(l.Name, " for ", far.processes, " at ", roundTrip, " from ", int(far.phase)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(time.Now)
					time.Sleep(far.phase * time.Millisecond)
					var mu sync.Mutex
					var went []time.Duration
					var calls sync.WaitGroup
					start, length := time.Now(), window+max(10*time.Second, window)
					for range far.processes {
						p := newFarProcess(t, f, roundTrip, l)
						defer p.close()
						for range callers / far.processes {
							calls.Go(func() {
								for time.Since(start) < length {
									if p.acquires() == nil {
										mu.Lock()
										went = append(went, time.Since(start))
										mu.Unlock()
									}
									time.Sleep(300 * time.Millisecond)
								}
							})
						}
					}
					calls.Wait()
					slices.Sort(went)
					used, most := 0, int(l.Rate.Amount)
					if l.Shape == limit.Bucket {
						most = rate*int(far.window) + rate
					}
					for i, at := range went {
						if n := i + 1 - sort.Search(i, func(j int) bool { return at-went[j] < window }); n > most {
							t.Fatalf("%d went in %v until %v, want %d at most", n, window, at, most)
						}
						if at > window && at <= length {
							used++
						}
					}
					if want := rate * int((length-window)/time.Second); used < want*95/100 {
						t.Errorf("%d of %d used, want 95%%", used, want)
					} else {
						t.Logf("%d of %d used", used, want)
					}
				})
			})
		}
	}
}
