package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// end makes a call of a caller that ends with a class, and reports whether it was let through.
func end(u *weir.Upstream, caller string, class outcome.Class) bool {
	p, d := try(u, weir.Call{Caller: caller, Safe: true})
	if d.Allowed {
		p.Report(outcome.Outcome{Class: class})
	}
	return d.Allowed
}

// openAfter is how many failures of a caller open the breaker, 0 if that many do not.
func openAfter(u *weir.Upstream, caller string, most int, between func(i int)) int {
	for i := range most {
		if !end(u, caller, outcome.Failed) {
			return i
		}
		if between != nil {
			between(i)
		}
		pass(10 * time.Millisecond)
	}
	return 0
}

func TestOneOfTwoActiveCallersCannotOpenTheBreaker(t *testing.T) {
	for name, config := range map[string]breaker.Config{
		"default":         {},
		"in a row":        {Consecutive: 5},
		"share":           {Share: 0.5, MinCalls: 10},
		"per window":      {Failures: 5, Window: time.Minute},
		"window of 1 min": {Failures: 20, Window: time.Minute, Consecutive: 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := steady()
				p.Breaker = config
				u := open(t, p, weir.Options{})
				end(u, "alice", outcome.OK)
				if n := openAfter(u, "mallory", 500, func(i int) {
					if i%100 == 50 {
						end(u, "alice", outcome.OK)
					}
				}); n > 0 {
					t.Errorf("%d failures of one caller have opened the breaker for another one", n)
				}
				if n := openAfter(u, "alice", 30, nil); n == 0 {
					t.Error("failures of both callers do not open it")
				}
			})
		})
	}
}

func TestOnlyCallerOpensTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, caller := range []string{"", "alice"} {
			u := open(t, steady(), weir.Options{})
			if n := openAfter(u, caller, 30, nil); n == 0 {
				t.Errorf("failures of the only caller %q do not open the breaker", caller)
			}
		}
		u := open(t, steady(), weir.Options{})
		end(u, "bob", outcome.OK)
		pass(time.Minute) // bob is not active any more
		if n := openAfter(u, "alice", 30, nil); n == 0 {
			t.Error("a caller that has left keeps the breaker closed")
		}
	})
}

// An upstream that is down for all is found to be down as soon as without callers' names, when they call equally often.
func TestAllCallersTogetherOpenTheBreakerAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain, named := open(t, steady(), weir.Options{}), open(t, steady(), weir.Options{})
		a, b := 0, 0
		for i := range 100 {
			if a == 0 && !end(plain, "", outcome.Failed) {
				a = i
			}
			if b == 0 && !end(named, []string{"x", "y", "z"}[i%3], outcome.Failed) {
				b = i
			}
			pass(10 * time.Millisecond)
		}
		if a == 0 || b < a || b > a+2 {
			t.Errorf("open after %d failures of one, %d of three callers", a, b)
		}
	})
}

// A caller whose calls wait behind those of another one is active: it makes no calls meanwhile.
func TestCallerThatWaitsStaysActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		end(u, "alice", outcome.OK)
		pass(30 * time.Second)
		if n := openAfter(u, "mallory", 100, nil); n > 0 {
			t.Errorf("%d failures of one caller have opened the breaker for a waiting one", n)
		}
	})
}
