package weir_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// Many limits with few scopes, some of which do not count every call, charge each call under its keys.
func TestLimitsOfTheSameScopeHaveTheSameKey(t *testing.T) {
	var limits []limit.Limit
	for i := range 12 {
		scope := []string{"tenant", "user", ""}[i%3]
		l := scoped(rate(fmt.Sprint("l", i), 1, time.Hour, 10), scope)
		if i%4 == 1 {
			l.If = limit.Match{Scope: "plan", In: []string{"free"}}
		}
		limits = append(limits, l)
	}
	u := open(t, steady(limits...), weir.Options{})
	for _, plan := range []string{"free", "paid", "free"} {
		for _, who := range []string{"a", "b"} {
			call := weir.Call{Keys: map[string]string{"tenant": "tenant " + who, "user": "user " + who, "plan": plan}}
			var p weir.Permit
			if d := u.Try(call, &p); !d.Allowed {
				t.Fatalf("%s, %s: %+v", who, plan, d)
			}
			n := 0
			for _, l := range p.Levels() {
				want := ""
				if l.Rule.Scope != "" {
					want = call.Keys[l.Rule.Scope]
				}
				if l.Key != want || l.Cost != 1 {
					t.Errorf("%s, %s: limit %s has key %q and costs %d, want %q", who, plan, l.Rule.Name, l.Key, l.Cost, want)
				}
				n++
			}
			if want := map[string]int{"free": 12, "paid": 9}[plan]; n != want {
				t.Errorf("%s, %s: %d limits, want %d", who, plan, n, want)
			}
			p.Report(outcome.Outcome{Class: outcome.OK})
		}
	}
	for i := range limits {
		key := map[string]string{"tenant": "tenant a", "user": "user a"}[limits[i].Scope]
		want := int64(10 - 3)
		switch {
		case limits[i].Scope == "" && i%4 == 1:
			want = 10 - 4
		case limits[i].Scope == "":
			want = 10 - 6
		case i%4 == 1:
			want = 10 - 2
		}
		if got := left(t, u, limits[i].Name, key); got != want {
			t.Errorf("%s: %d left for %q, want %d", limits[i].Name, got, key, want)
		}
	}
}

// A body that ends later settles the charges of its attempt.
func TestReportEndSettlesSeveralCharges(t *testing.T) {
	var limits []limit.Limit
	for i := range 6 {
		limits = append(limits, tokens(1, time.Hour, 1000))
		limits[i].Name = fmt.Sprint("l", i)
	}
	u := open(t, steady(limits...), weir.Options{Clock: &leap{At: 1000 * sec}})
	start := func() *weir.Run {
		r := u.Begin(background, weir.Call{Safe: true, Cost: map[string]int64{"tokens": 100}})
		for n := 0; r.Next(); n++ {
			if n == 0 {
				r.Report(r.Classify(errFailed), errFailed)
				continue
			}
			r.ReportStart(outcome.Outcome{Class: outcome.OK})
		}
		r.End()
		return r
	}
	one, two := start(), start()
	one.ReportEnd(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 100}})
	two.ReportEnd(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 1}})
	for i := range limits {
		if got := left(t, u, limits[i].Name, ""); got != 1000-300-1 {
			t.Errorf("%s: %d left, want %d", limits[i].Name, got, 1000-300-1)
		}
	}
}
