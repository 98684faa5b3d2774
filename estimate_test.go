package weir_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// The store holds back some units of a shared limit. An estimate is reduced to the rest, which is granted as soon as the
// limit is full. A busy limit is never full for longer.
func TestGuessesAreCutToWhatAFleetCanGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate("tokens", 100_000, time.Minute, 100_000)
		l.Unit = "tokens"
		for name, fairly := range map[string]weir.Fair{"in turn": {By: "user"}, "not": {}} {
			u := joined(t, 1, weir.Policy{Limits: []limit.Limit{l}, MaxWait: 2 * time.Minute, Fair: fairly})[0]
			begin := time.Now()
			for range 2 {
				p, err := u.Acquire(context.Background(), weir.Call{Cost: map[string]int64{"tokens": 250_000}, Estimated: true})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
			if took := time.Since(begin); took > 59*time.Second+500*time.Millisecond {
				t.Errorf("%s: the second call got its units after %v, want 59s: for more units, the limit must be full for a second", name, took)
			}
			// An exact cost above the limit is refused.
			var p weir.Permit
			if d := u.Try(weir.Call{Cost: map[string]int64{"tokens": 100_001}}, &p); d.Allowed || d.RetryAfter != weir.Never {
				t.Errorf("%s: more than the limit: %+v", name, d)
			}
		}
	})
}

// However long most pauses last, a pause that has ended makes room for another one.
func TestAPauseThatIsOverMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		holds := func(pool string, after time.Duration) bool {
			p, d := try(u, from(pool))
			if !d.Allowed {
				t.Fatal(d)
			}
			o := spent(after)
			p.Report(o)
			_, d = try(u, from(pool))
			return !d.Allowed
		}
		for i := range 9_999 {
			holds(fmt.Sprint("month ", i), 30*24*time.Hour)
		}
		for i := range 3 {
			if !holds(fmt.Sprint("short ", i), sec) {
				t.Errorf("short pause %d found no room", i)
			}
			if holds(fmt.Sprint("over ", i), sec) {
				t.Errorf("short pause %d took no room", i)
			}
			pass(sec)
		}
	})
}
