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

// After an outage the store counts as used what processes could have used meanwhile. Refusals name this cause until the limit has
// recovered, also when all processes have responded again. Later refusals name the limit only.
func TestRefusalAfterOutageNamesReservedPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 5, Per: time.Second, Burst: 10}}
		s := &faulty{Store: NewMemory(nil)}
		_, regs := fleetOf(t, 2, s, l, Options{})
		ask := func(r *limit.Registry) (bool, limit.Want) {
			charge := limit.Charge{Registry: r, Key: "", Cost: 1}
			ok, _, err := goOne(context.Background(), clock.System.Now(), charge)
			if err != nil {
				t.Fatal(err)
			}
			var p limit.Charges
			p.Add(charge)
			return ok, p.Lacks(clock.System.Now(), 0)
		}
		// refused uses the limit up, and returns what the next call lacks.
		refused := func(r *limit.Registry) limit.Want {
			for {
				if ok, lacks := ask(r); !ok {
					return lacks
				}
			}
		}
		time.Sleep(5 * time.Second)
		if w := refused(regs[0]); w.Lack != limit.LacksNothing {
			t.Errorf("before the outage a call lacks %q", w.Lack.Word())
		}
		s.down.Store(true)
		time.Sleep(20 * time.Second)
		s.down.Store(false)
		time.Sleep(1500 * time.Millisecond) // both processes have responded twice
		if w := refused(regs[0]); w.Lack != limit.LacksReserved || w.Part < 0.4 {
			t.Errorf("after the outage a call lacks %q, part %v; want reserved, of about a half or more", w.Lack.Word(), w.Part)
		}
		time.Sleep(3 * time.Second)
		if w := refused(regs[0]); w.Lack != limit.LacksNothing {
			t.Errorf("after the limit has recovered a call lacks %q", w.Lack.Word())
		}
	})
}
