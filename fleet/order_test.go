package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A lease keeps units for a waiting call. Later calls do not take them, not even from a block, until the first
// one has been served.
func TestWhatIsKeptIsForWhoCameFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		_, regs := fleetOf(t, 1, NewMemory(nil), l, Options{})
		now := clock.System.Now()
		p := regs[0].Get(now, "").Leased().(*lease)
		p.put(now, 10, sending{at: now}.expiry(time.Second), Mark{})
		p.keep(kept{queue: new(queue), came: 1, from: now, at: now + time.Second, until: now + time.Second})
		if _, _, ok := p.Take(now, 1); ok {
			t.Error("taken while it is kept for another")
		}
		p.drop(func(kept) bool { return true })
		if _, _, ok := p.Take(now, 1); !ok {
			t.Error("not taken though it is kept for nobody any more")
		}
	})
}

// A call that cannot wait behind another queue is refused immediately with the time until its turn.
func TestWhoCannotWaitBehindAnotherQueueIsToldWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 100}}
		_, regs := fleetOf(t, 1, NewMemory(nil), l, Options{Lease: -1})
		time.Sleep(time.Second)
		now := clock.System.Now()
		p := regs[0].Get(now, "").Leased().(*lease)
		p.keep(kept{queue: new(queue), from: now, at: now + 3*time.Second, until: now + 6*time.Second})
		ok, v, err := goAs(t.Context(), now, limit.Normal, regs[0], 20)
		if took := clock.System.Now() - now; ok || err != nil || took != 0 || v.Wait != 5*time.Second {
			t.Errorf("got %v %+v %v after %v, want to be told of 5s at once", ok, v, err, took)
		}
	})
}
