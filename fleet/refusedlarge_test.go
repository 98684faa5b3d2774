package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// TestRefusedLargeRequestChangesNothingForOthers has a client refused ten times per second, since it would have
// to wait long. Small calls of this process and of another one are served as without it. Its refusals contain
// the time to wait.
func TestRefusedLargeRequestChangesNothingForOthers(t *testing.T) {
	shapes := []limit.Limit{
		{Name: "bucket", Unit: "tokens", Rate: bucket.Rate{Amount: 250_000, Per: time.Minute, Burst: 250_000}},
		{Name: "rolling", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 250_000, Per: time.Minute}},
		{Name: "fixed", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 250_000}, Every: bucket.Hour},
	}
	for _, l := range shapes {
		for _, o := range []Options{{}, {Lease: -1}} {
			for _, patience := range []time.Duration{0, 100 * time.Millisecond} {
				synctest.Test(t, func(t *testing.T) { refusesLarge(t, l, o, patience) })
			}
		}
	}
}

func refusesLarge(t *testing.T, l limit.Limit, o Options, patience time.Duration) {
	_, regs := fleetOf(t, 2, nearby(), l, o)
	tries := func(r *limit.Registry, cost int64) (bool, limit.Verdict) {
		ok, v, err := goOne(context.Background(), clock.System.Now()+patience, limit.Charge{Registry: r, Key: "", Cost: cost})
		if err != nil {
			t.Fatal(err)
		}
		return ok, v
	}
	for range 10 { // 100,000 remain
		if ok, v := tries(regs[0], 15_000); !ok {
			t.Fatalf("%v: %+v", l, v)
		}
	}
	most := regs[0].Burst(clock.System.Now(), "")
	begin := clock.System.Now()
	var stop atomic.Bool
	large := most - 5000
	var waits []limit.Verdict
	var at []time.Duration
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			if ok, v := tries(regs[0], large); ok {
				t.Errorf("%v: %d were granted", l, large)
			} else {
				waits, at = append(waits, v), append(at, clock.System.Now()-begin)
			}
			time.Sleep(97 * time.Millisecond)
		}
	}()
	var refused [2]int
	for range 200 {
		for i, r := range regs {
			if ok, _ := tries(r, 100); !ok {
				refused[i]++
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop.Store(true)
	<-done
	if refused != [2]int{} {
		t.Errorf("%v, lease %v, patience %v: of 200 small calls of each process %v were refused", l.Name, o.Lease, patience, refused)
	}
	if l.Shape != limit.Bucket {
		return
	}
	short := 0
	for i, v := range waits {
		if at[i] < 4*time.Second { // the process still holds a block of the size of its recent usage
			continue
		}
		// Small calls have taken 2,000 per second, and 4,167 have accrued.
		free := float64(most) - 150_000 + at[i].Seconds()*(l.PerSecond()-2000)
		want := (float64(large) - free) / l.PerSecond()
		if got := v.Wait.Seconds(); got < 0.9*want || got > 1.1*want {
			if short++; short == 1 {
				t.Errorf("%v, lease %v, patience %v: after %v told to wait %v, want %.1fs", l.Name, o.Lease, patience, at[i], v.Wait, want)
			}
		}
	}
	if short > 0 {
		t.Errorf("%d of %d were told another wait than what is true within 10%%", short, len(waits))
	}
}
