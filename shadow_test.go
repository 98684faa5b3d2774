package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// load makes 600 calls, one every 10 ms, each of which ends after 50 ms and reports its usage, and returns what the calls
// experienced.
func load(t *testing.T, u *weir.Upstream, used map[string]int64) (allowed, waited, refused uint64, wait time.Duration) {
	t.Helper()
	type result struct {
		err    error
		waited time.Duration
	}
	const n = 600
	results := make(chan result, n)
	for i := range n {
		go func() {
			begin := time.Now()
			c := weir.Call{Keys: map[string]string{"tenant": fmt.Sprint("t", i%2)}}
			if used != nil {
				c.Cost = map[string]int64{"tokens": 100}
			}
			p, err := u.Acquire(context.Background(), c)
			results <- result{err, time.Since(begin)}
			if err == nil {
				time.Sleep(50 * time.Millisecond)
				p.Report(outcome.Outcome{Class: outcome.OK, Usage: used})
			}
		}()
		time.Sleep(10 * time.Millisecond)
	}
	for range n {
		switch r := <-results; {
		case r.err != nil:
			refused++
		case r.waited > 0:
			waited++
			wait += r.waited
		default:
			allowed++
		}
	}
	return allowed, waited, refused, wait
}

// A shadow limit reports for the same calls what the same binding limit does to them.
func TestShadowLimitReportsWhatTheLimitWouldDo(t *testing.T) {
	for name, l := range map[string]limit.Limit{
		"bucket":   {Rate: bucket.Rate{Amount: 20, Per: time.Second, Burst: 20}},
		"by key":   {Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}, Scope: "tenant"},
		"rolling":  {Rate: bucket.Rate{Amount: 50, Per: 2 * time.Second}, Shape: limit.Rolling},
		"calendar": {Rate: bucket.Rate{Amount: 300}, Shape: limit.Calendar, Every: bucket.Hour},
		"tokens":   {Rate: bucket.Rate{Amount: 2000, Per: time.Second, Burst: 2000}, Unit: "tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l.Name = "all"
				used := map[string]int64{"requests": 1}
				if l.Unit != "" {
					used = map[string]int64{"tokens": 60}
				}
				allowed, waited, refused, wait := load(t, open(t, weir.Policy{Limits: []limit.Limit{l}, MaxWait: time.Second}, weir.Options{}), used)
				u := open(t, weir.Policy{Shadow: []limit.Limit{l}, MaxWait: time.Second}, weir.Options{})
				if _, waited, refused, _ := load(t, u, used); waited+refused > 0 {
					t.Errorf("the shadow limit made %d calls wait and refused %d", waited, refused)
				}
				time.Sleep(time.Second) // the last waits
				trials := u.Trials()
				if len(trials) != 1 || trials[0].Limit.Name != "all" {
					t.Fatalf("%+v", trials)
				}
				got := trials[0]
				if refused == 0 || got.Allowed+got.Waited+got.Refused != 600 {
					t.Errorf("%d refused if bound, %+v", refused, got)
				}
				for what, n := range map[string][2]float64{
					"allowed": {float64(allowed), float64(got.Allowed)}, "waited": {float64(waited), float64(got.Waited)},
					"refused": {float64(refused), float64(got.Refused)}, "seconds": {wait.Seconds(), got.Wait.Seconds()},
				} {
					if math.Abs(n[0]-n[1]) > 3+n[0]/20 {
						t.Errorf("%s: %.1f if bound, %.1f in shadow", what, n[0], n[1])
					}
				}
				if n := len(got.Keys); l.Scope == "" && n != 0 || l.Scope != "" && n != 2 {
					t.Errorf("%d keys", n)
				}
			})
		})
	}
}

// Processes of a fleet try a shadow limit together, and a bound limit of the same name is not changed by it.
func TestFleetTriesAShadowLimitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := fleet.NewMemory(nil)
		bound, tried := rate("all", 1000, sec, 1000), rate("all", 100, sec, 10)
		var all []*weir.Upstream
		for range 2 {
			f := fleet.New(store, fleet.Options{})
			f.Start()
			defer f.Close(background)
			all = append(all, open(t, weir.Policy{Limits: []limit.Limit{bound}, Shadow: []limit.Limit{tried}, MaxWait: -1}, weir.Options{Fleet: f}))
		}
		time.Sleep(5 * time.Second) // the limits fill
		before := all[0].Trials()[0].Allowed + all[1].Trials()[0].Allowed
		for range 1000 { // 200 per second
			for _, u := range all {
				if _, err := u.Acquire(background, weir.Call{}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * ms)
		}
		time.Sleep(time.Second)
		a, b := all[0].Trials()[0], all[1].Trials()[0]
		if n := a.Allowed + b.Allowed - before; n < 950 || n > 1010 || a.Allowed+a.Refused != 1000 || b.Allowed+b.Refused != 1000 {
			t.Errorf("allowed %d of 2000, want about 1000: %+v %+v", n, a, b)
		}
	})
}

func TestShadowLimitsCanBeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(n int64) weir.Policy {
			return weir.Policy{Shadow: []limit.Limit{rate("a", 1, sec, n), rate("b", 1000, sec, 1000)}, MaxWait: -1}
		}
		u := open(t, one(5), weir.Options{})
		go10 := func() {
			for range 10 {
				p, err := u.Acquire(background, weir.Call{})
				if err != nil {
					t.Fatal(err)
				}
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
			synctest.Wait()
		}
		go10()
		if got := u.Trials(); got[0].Allowed != 5 || got[0].Refused != 5 || got[1].Allowed != 5 {
			t.Errorf("%+v", got)
		}
		if err := u.Set(one(2)); err != nil {
			t.Fatal(err)
		}
		go10()
		if got := u.Trials(); got[0].Allowed != 0 || got[0].Refused != 10 || got[1].Allowed != 5 {
			t.Errorf("%+v: the changed limit keeps its usage, and counts anew", got)
		}
		if err := u.Set(weir.Policy{}); err != nil || u.Trials() != nil {
			t.Errorf("%v: %+v", err, u.Trials())
		}
		go10()
		for _, bad := range []limit.Limit{{Name: "x"}, limit.Unknown("x")} {
			if err := u.Set(weir.Policy{Shadow: []limit.Limit{bad}}); err == nil {
				t.Errorf("%+v is accepted", bad)
			}
		}
	})
}

// A call that costs less than charged returns its units to the shadow limit. A refused call is not charged.
func TestShadowLimitIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, weir.Policy{
			Limits: []limit.Limit{rate("calls", 1, time.Hour, 20)}, Shadow: []limit.Limit{tokens(1, time.Hour, 100)}, MaxWait: -1,
		}, weir.Options{})
		for i := range 30 {
			p, err := u.Acquire(background, weir.Call{Cost: map[string]int64{"tokens": 100}})
			if (err == nil) != (i < 20) {
				t.Fatal(i, err)
			}
			synctest.Wait()
			if err == nil {
				p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 0}})
			}
		}
		if got := u.Trials()[0]; got.Allowed != 20 || got.Refused != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// A call that ends before its turn at the shadow limit is settled there at its turn.
func TestShadowLimitIsSettledAfterItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, weir.Policy{Shadow: []limit.Limit{tokens(10, sec, 100)}, MaxWait: 15 * sec}, weir.Options{})
		end := func(used int64) {
			p, err := u.Acquire(background, weir.Call{Cost: map[string]int64{"tokens": 100}})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": used}})
		}
		end(100)
		end(0)               // its turn is in 10 s, and then all is returned
		time.Sleep(11 * sec) // more than that
		end(100)
		time.Sleep(15 * sec)
		if got := u.Trials()[0]; got.Allowed != 2 || got.Waited != 1 || got.Wait != 10*sec {
			t.Errorf("%+v", got)
		}
	})
}

// A storeAway is a store that does not respond.
type storeAway struct{ fleet.Store }

var errAway = errors.New("away")

func (storeAway) Take(context.Context, *fleet.Ask) error { return errAway }
func (storeAway) Beat(context.Context, *fleet.Beat) (fleet.Standing, error) {
	return fleet.Standing{}, errAway
}

func TestShadowLimitWithoutItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleet.New(storeAway{fleet.NewMemory(nil)}, fleet.Options{})
		f.Start()
		defer f.Close(background)
		u := open(t, weir.Policy{Shadow: []limit.Limit{rate("all", 1, sec, 1)}, MaxWait: sec}, weir.Options{Fleet: f})
		for range 10 {
			if _, err := u.Acquire(background, weir.Call{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * sec)
		}
		if got := u.Trials()[0]; got.Refused+got.Waited+got.Allowed != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// Any number of keys uses bounded memory.
func TestShadowLimitOfManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := scoped(rate("all", 1, time.Hour, 1), "tenant")
		u := open(t, weir.Policy{Shadow: []limit.Limit{l}, MaxWait: -1}, weir.Options{})
		for i := range 2 * 1500 { // the second call of each key would be refused
			p, err := u.Acquire(background, weir.Call{Keys: map[string]string{"tenant": fmt.Sprint(i % 1500)}})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			p.Report(outcome.Outcome{Class: outcome.OK})
		}
		got := u.Trials()[0]
		if got.Allowed != 1500 || got.Refused != 1500 || len(got.Keys) != 1001 || got.Keys[limit.Other].Refused != 500 {
			t.Errorf("allowed %d, refused %d, %d keys, others %+v", got.Allowed, got.Refused, len(got.Keys), got.Keys[limit.Other])
		}
	})
}
