package fleet

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// longUse is processes whose calls reserve k times their usage and report after hold. Their demand is always
// higher than the limit.
type longUse struct {
	limit     limit.Limit
	options   Options
	processes int
	k         float64
	hold      time.Duration
	cost      int64         // the reservation of a call
	again     time.Duration // the approximate time before refused calls retry

	mu   sync.Mutex
	all  []use
	over int64
}

func (u *longUse) String() string {
	return fmt.Sprintf("%v, burst %d, lease %v, %d processes, k %v, calls of %v", u.limit, u.limit.Full(), u.options.Lease, u.processes, u.k, u.hold)
}

// run makes calls, and returns the units that are used from begin to end.
func (u *longUse) run(t *testing.T, begin, end time.Duration) (used int64, regs []*limit.Registry) {
	_, regs = fleetOf(t, u.processes, nearby(), u.limit, u.options)
	start := clock.System.Now()
	begin, end = start+begin, start+end
	var calls, callers sync.WaitGroup
	for _, r := range regs {
		for range 4 {
			callers.Go(func() {
				for clock.System.Now() < end {
					p, ok, err := take(context.Background(), r, u.cost, min(end, clock.System.Now()+10*time.Second))
					if err != nil {
						t.Error(err)
					}
					if !ok {
						time.Sleep(u.again/2 + rand.N(u.again))
						continue
					}
					i := u.goes(clock.System.Now())
					calls.Go(func() {
						time.Sleep(u.hold)
						uses := int64(float64(u.cost) / u.k)
						p.Settle(clock.System.Now(), map[string]int64{"tokens": uses})
						u.mu.Lock()
						u.all[i].n = uses
						u.mu.Unlock()
					})
				}
			})
		}
	}
	callers.Wait()
	calls.Wait()
	for _, c := range u.all {
		if c.at >= begin && c.at < end {
			used += c.n
		}
	}
	return used, regs
}

// goes records a call. It also records by how much the reservations of open calls and the usage of ended ones
// exceed the limit in any window that ends now.
func (u *longUse) goes(now time.Duration) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, use{now, u.cost})
	sum, l := int64(0), u.limit
	for i := len(u.all) - 1; i >= 0; i-- {
		past := now - u.all[i].at
		if l.Shape == limit.Rolling && past >= l.Per || l.Shape == limit.Calendar && clock.System.Wall(now).Truncate(time.Hour) != clock.System.Wall(u.all[i].at).Truncate(time.Hour) {
			break
		}
		most := l.Amount
		if l.Shape == limit.Bucket {
			most = l.Full() + int64(l.PerSecond()*past.Seconds()+1e-6)
		}
		sum += u.all[i].n
		u.over = max(u.over, sum-most)
	}
	return len(u.all) - 1
}

// TestLongCallsUseWhatABucketAllows has calls that reserve k times their usage and report after H. The limit
// allows min(1, (1 + burst/(rate x H))/k) of its rate. The burst is the store's, without the units withheld for
// leases.
func TestLongCallsUseWhatABucketAllows(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, lease := range []time.Duration{-1, 0} {
		for _, processes := range []int{1, 8} {
			for _, k := range []float64{1.2, 2, 3} {
				for _, fill := range []int64{1, 15} {
					holds := []time.Duration{time.Millisecond, 300 * time.Millisecond, time.Second, 10 * time.Second}
					if campaign.Long() {
						holds = append(holds, 120*time.Second)
					}
					for _, hold := range holds {
						u := &longUse{options: Options{Lease: lease}, processes: processes, k: k, hold: hold, cost: 99 * fill, again: time.Millisecond}
						u.limit = limit.Limit{Name: "l", Unit: "tokens", Rate: bucket.Rate{Amount: 360_000, Per: time.Minute, Burst: 6000 * fill}}
						synctest.Test(t, func(t *testing.T) { u.usesBucket(t, time.Duration(fill)*time.Second) })
					}
				}
			}
		}
	}
}

func (u *longUse) usesBucket(t *testing.T, fill time.Duration) {
	begin := 2*u.hold + 2*fill
	d := time.Duration(3+3*fill/u.hold) * u.hold
	if u.hold == fill {
		d *= 4 // the share depends most on the instants at which calls go
	}
	used, regs := u.run(t, begin, begin+d)
	share := float64(used) / d.Seconds() / u.limit.PerSecond()
	burst := float64(regs[0].Burst(clock.System.Now(), ""))
	allowed := min(1, (1+burst/(u.limit.PerSecond()*u.hold.Seconds()))/u.k)
	want := 0.97 * allowed
	t.Logf("%v: %.1f%% of the rate, %.1f%% of what is allowed", u, 100*share, 100*share/allowed)
	if share < want {
		t.Errorf("%v: %.1f%% of the rate, want %.1f%%", u, 100*share, 100*want)
	}
	if u.over > 0 {
		t.Errorf("%v: %d over", u, u.over)
	}
}

// TestLongCallsUseWhatARollingLimitAllows: units count for a window W after their grant, or until they return.
// So calls use 1/(1 + (k-1) x min(1, H/W)) of the amount in each window.
func TestLongCallsUseWhatARollingLimitAllows(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, processes := range []int{1, 4} {
		for _, k := range []float64{1.2, 3} {
			for _, hold := range []time.Duration{time.Second, 70 * time.Second} {
				u := &longUse{options: Options{}, processes: processes, k: k, hold: hold, cost: 600, again: 200 * time.Millisecond}
				u.limit = limit.Limit{Name: "l", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 60_000, Per: time.Minute}}
				synctest.Test(t, func(t *testing.T) {
					// Calls have a cycle of a window plus the duration of a call.
					begin, d := 2*u.hold+2*time.Minute, 40*max(time.Minute, u.hold)
					used, _ := u.run(t, begin, begin+d)
					share := float64(used) / d.Seconds() / u.limit.PerSecond()
					allowed := 1 / (1 + (k-1)*min(1, hold.Seconds()/60))
					t.Logf("%v: %.1f%% of the amount, %.1f%% of what is allowed", u, 100*share, 100*share/allowed)
					if share < 0.97*allowed || u.over > 0 {
						t.Errorf("%v: %.1f%% of the amount, want %.1f%%; %d over", u, 100*share, 97*allowed, u.over)
					}
				})
			}
		}
	}
}

// TestLongCallsUseWhatACalendarLimitAllows: calls reserve all remaining units, and (k-1)/k of them return after
// H and are reserved again. So in a window of n times H, at least 1 - (1-1/k)^n of the amount is used.
func TestLongCallsUseWhatACalendarLimitAllows(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, processes := range []int{1, 4} {
		for _, k := range []float64{3} {
			for _, hold := range []time.Duration{time.Second, 20 * time.Minute} {
				u := &longUse{options: Options{}, processes: processes, k: k, hold: hold, cost: 1000, again: time.Second}
				u.limit = limit.Limit{Name: "l", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Hour}
				synctest.Test(t, func(t *testing.T) {
					now := time.Now()
					to := now.Truncate(time.Hour).Add(time.Hour).Sub(now)
					used, _ := u.run(t, to, to+time.Hour)
					share := float64(used) / float64(u.limit.Amount)
					allowed := 1 - math.Pow(1-1/k, math.Floor(float64(time.Hour-time.Second)/float64(hold)))
					t.Logf("%v: %.1f%% of the amount, %.1f%% of what is allowed", u, 100*share, 100*share/allowed)
					if share < 0.97*allowed || u.over > 0 {
						t.Errorf("%v: %.1f%% of the amount, want %.1f%%; %d over", u, 100*share, 97*allowed, u.over)
					}
				})
			}
		}
	}
}
