package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// groupOf returns a fleet of one process with several limits.
func groupOf(t *testing.T, s Store, o Options, ls ...limit.Limit) (*Fleet, []*limit.Registry) {
	f := New(s, o)
	f.Start()
	var regs []*limit.Registry
	for _, l := range ls {
		r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		regs = append(regs, r)
	}
	return f, regs
}

// hung is a store that does not respond at all during an outage.
type hung struct{ *faulty }

func (s hung) Take(ctx context.Context, a *Ask) error {
	if s.down.Load() {
		<-ctx.Done()
		return errDown
	}
	return s.faulty.Take(ctx, a)
}

func (s hung) Beat(ctx context.Context, b *Beat) (Standing, error) {
	if s.down.Load() {
		<-ctx.Done()
		return Standing{}, errDown
	}
	return s.faulty.Beat(ctx, b)
}

// TestAloneWhoIsPatientWaits checks that a caller waits during an outage if it would be served before its
// deadline.
func TestAloneWhoIsPatientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		s := &faulty{Store: NewMemory(nil)}
		_, regs := fleetOf(t, 1, s, l, Options{})
		for range 100 {
			drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			time.Sleep(100 * time.Millisecond)
		}
		s.down.Store(true)
		time.Sleep(10 * time.Second)
		bad, all := 0, 0
		for range 100 {
			drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			begin := clock.System.Now()
			ok, v, _ := goOne(context.Background(), begin+300*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			all++
			if !ok {
				bad++
				if bad < 3 {
					t.Logf("refused after %v: %+v", clock.System.Now()-begin, v)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if bad > 0 {
			t.Errorf("%d of %d refused at once though a unit came each 10 to 20 ms and they had 300 ms", bad, all)
		}
		s.down.Store(false)
	})
}

// TestWaitersGoOnAlone checks that calls that wait when an outage begins are served as soon as the part may be
// used.
func TestWaitersGoOnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		s := hung{&faulty{Store: NewMemory(nil)}}
		_, regs := fleetOf(t, 1, s, l, Options{Timeout: 4 * time.Second})
		for range 100 {
			drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			time.Sleep(100 * time.Millisecond)
		}
		s.down.Store(true)
		time.Sleep(300 * time.Millisecond) // leases have expired
		begin := clock.System.Now()
		ok, v, _ := goOne(context.Background(), begin+10*time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		if took := clock.System.Now() - begin; !ok || took > 1500*time.Millisecond {
			t.Errorf("served %v %+v after %v, want a second or so", ok, v, took)
		}
		s.down.Store(false)
	})
}

// TestWaitersGoOnAloneFarAway is the same with a distant store.
func TestWaitersGoOnAloneFarAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 6000, Per: time.Minute, Burst: 6000}}
		h := hung{&faulty{Store: NewMemory(nil)}}
		s := farAway{h, 300 * time.Millisecond}
		_, regs := fleetOf(t, 1, s, l, Options{})
		for range 60 {
			goOne(context.Background(), clock.System.Now()+time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			time.Sleep(300 * time.Millisecond)
		}
		h.down.Store(true)
		g := sourceOf(regs[0]).group
		time.Sleep(1100 * time.Millisecond)
		begin := clock.System.Now()
		ok, v, _ := goOne(context.Background(), begin+20*time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		now := clock.System.Now()
		lone := time.Duration(g.lone.Load())
		g.own.Lock()
		part := g.standing.part
		t.Logf("rtt %v timeout %v silence %v", g.standing.rtt, g.timeout(), g.standing.quiet())
		g.own.Unlock()
		need := time.Duration(float64(10*time.Millisecond) * Whole / float64(part))
		t.Logf("served %v %+v after %v; by itself from %v on, and one unit in %v", ok, v, now-begin, lone-begin, need)
		if late := now - lone - need; late > 50*time.Millisecond {
			t.Errorf("served %v after it could have been", late)
		}
		h.down.Store(false)
	})
}

// TestQuotaThroughASlowStore checks that calls of a rate and a quota are served if responses of the store are
// too late. The part of the rate is used, and the store is asked for more of the quota.
func TestQuotaThroughASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := limit.Limit{Name: "r", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		quota := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1_000_000}, Every: bucket.Day}
		s := farAway{NewMemory(nil), 500 * time.Millisecond}
		f, regs := groupOf(t, s, Options{}, rate, quota)
		for sec := range 40 {
			went, refused := 0, 0
			var last limit.Verdict
			for range 20 {
				ok, v, _ := goOne(context.Background(), clock.System.Now()+2*time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1}, limit.Charge{Registry: regs[1], Key: "", Cost: 1})
				if ok {
					went++
				} else {
					refused, last = refused+1, v
				}
				time.Sleep(50 * time.Millisecond)
			}
			p := f.Places()[0]
			if refused > 0 || sec%10 == 0 {
				t.Logf("round %d: %v part %.2f: %d went, %d refused %v %v; left of quota %d", sec, p.State, p.Part, went, refused, last.Lack, last.Wait, regs[1].Get(clock.System.Now(), "").Look(clock.System.Now()).Left)
			}
			if sec > 20 && went == 0 {
				t.Errorf("nothing goes")
				break
			}
		}
		_ = f.Close(context.Background())
	})
}
