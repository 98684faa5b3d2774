package weir_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// note records every call in detail.
func note(got *[]string) weir.Events {
	return weir.Events{
		Recorded: func(*weir.Record) bool { return true },
		Detailed: func(r *weir.Record) { *got = append(*got, told(r)) },
	}
}

// told formats a Record as one line, with each attempt.
func told(r *weir.Record) string {
	s := fmt.Sprintf("%s %v n=%d refused=%v held=%d took=%v", r.ID, r.Class, r.N, r.Refused, r.Held, r.Took)
	for _, a := range r.Attempts() {
		s += fmt.Sprintf("; %d rested=%v waited=%v limit=%s reason=%s took=%v %v %s hint=%v", a.N, a.Rested, a.Waited, a.Limit, a.Reason, a.Took, a.Class, a.Code, a.Hint)
	}
	if r.Why != nil {
		s += "; " + r.Why.Error()
	}
	return s
}

// TestARecordHasEachAttempt checks the records of the calls in stories.
func TestARecordHasEachAttempt(t *testing.T) {
	want := map[string]string{
		"success": " ok n=1 refused=false held=0 took=0s; 1 rested=0s waited=0s limit= reason= took=0s ok  hint=0s",
		"retry": " ok n=2 refused=false held=0 took=100ms; 1 rested=0s waited=0s limit= reason= took=0s failed broken hint=0s" +
			"; 2 rested=100ms waited=0s limit= reason= took=0s ok  hint=0s",
		"give up":  " failed n=1 refused=false held=0 took=0s; 1 rested=0s waited=0s limit= reason= took=0s failed broken hint=0s; attempts spent",
		"rejected": " rejected n=1 refused=false held=0 took=0s; 1 rested=0s waited=0s limit= reason= took=0s rejected bad request hint=0s",
		"throttle": " throttled n=1 refused=false held=0 took=0s; 1 rested=0s waited=0s limit= reason= took=0s throttled slow down hint=2s; attempts spent",
		"refused": " failed n=2 refused=true held=0 took=100ms; 1 rested=0s waited=0s limit= reason= took=0s failed broken hint=0s" +
			"; 2 rested=100ms waited=0s limit=all reason=rate_limited took=0s unknown  hint=16m39.9s; api default: rate_limited by limit all (1/16m40s burst 1): retry after 16m39.9s",
	}
	for _, c := range stories {
		if want[c.name] == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := steady()
				if c.change != nil {
					c.change(&p)
				}
				var got []string
				u := open(t, p, weir.Options{Events: note(&got)})
				_, _ = do(background, u, answers(c.answers...))
				if len(got) != 1 || got[0] != want[c.name] {
					t.Errorf("got  %q\nwant %q", got, want[c.name])
				}
			})
		})
	}
}

// TestARecordOfASingleDecision covers Try and Acquire: refused, reported, and abandoned during the wait.
func TestARecordOfASingleDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		p := steady(rate("all", 1, 10*sec, 1))
		p.MaxWait = 4 * sec
		u := open(t, p, weir.Options{Events: note(&got)})
		var permit weir.Permit
		if d := u.Try(weir.Call{ID: "one"}, &permit); !d.Allowed {
			t.Fatal(d)
		}
		permit.Report(outcome.Outcome{Class: outcome.OK})
		if d := u.Try(weir.Call{ID: "two"}, &permit); d.Allowed {
			t.Fatal(d)
		}
		_, _ = u.Acquire(background, weir.Call{ID: "three"})
		ctx, cancel := context.WithCancelCause(background)
		u2 := open(t, with(p, func(p *weir.Policy) { p.MaxWait = 20 * sec }), weir.Options{Events: note(&got)})
		u2.Try(weir.Call{ID: "four"}, &permit)
		go func() { _, _ = u2.Acquire(ctx, weir.Call{ID: "five"}) }()
		synctest.Wait()
		pass(2 * sec)
		cancel(errors.New("left"))
		synctest.Wait()
		want := []string{
			"one ok n=1 refused=false held=0 took=0s; 1 rested=0s waited=0s limit= reason= took=0s ok  hint=0s",
			"two unknown n=1 refused=true held=0 took=0s; 1 rested=0s waited=0s limit=all reason=rate_limited took=0s unknown  hint=10s; api default: rate_limited by limit all (1/10s burst 1): retry after 10s",
			"three unknown n=1 refused=true held=0 took=0s; 1 rested=0s waited=0s limit=all reason=rate_limited took=0s unknown  hint=10s; api default: rate_limited by limit all (1/10s burst 1): retry after 10s",
			"five canceled n=0 refused=false held=0 took=2s",
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// TestARecordKeepsTheFirstAndTheLastAttempts of a call with more attempts than it can hold.
func TestARecordKeepsTheFirstAndTheLastAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n := 1; n <= 10; n++ {
			p := unbounded()
			p.Retry.Attempts = n
			var got []string
			u := open(t, p, weir.Options{Events: weir.Events{Recorded: func(r *weir.Record) bool {
				for _, a := range r.Attempts() {
					got = append(got, fmt.Sprint(a.N, " ", a.Hint))
				}
				return false
			}}})
			var failures []error
			for i := range n {
				failures = append(failures, &bad{O: outcome.Outcome{Class: outcome.Failed, Hint: outcome.Hint{Said: true, After: time.Duration(i+1) * ms}}})
			}
			_, _ = do(background, u, answers(failures...))
			var want []string
			for i := 1; i <= n; i++ {
				if i <= 3 || i > n-3 {
					want = append(want, fmt.Sprint(i, " ", time.Duration(i)*ms))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("of %d attempts: %v, want %v", n, got, want)
			}
		}
	})
}

// TestARecordIsSmallAndUsedAgain checks that a record allocates nothing, however the call ends, and that none is
// reported twice.
func TestARecordIsSmallAndUsedAgain(t *testing.T) {
	if size := unsafe.Sizeof(weir.Record{}); size > 256 {
		t.Errorf("a record has %d bytes, want 256 at most", size)
	}
	n := 0
	p := steady(rate("all", 1_000_000, sec, 1_000_000))
	p.Breaker = breaker.Config{Off: true}
	u := open(t, p, weir.Options{Events: weir.Events{Recorded: func(*weir.Record) bool { n++; return false }}})
	var permit weir.Permit
	if allocs := testing.AllocsPerRun(1000, func() {
		u.Try(weir.Call{}, &permit)
		permit.Report(outcome.Outcome{Class: outcome.OK})
	}); allocs > 0 {
		t.Errorf("%v allocations a call, want 0", allocs)
	}
	if n != 1001 {
		t.Errorf("%d of 1001 calls were told of", n)
	}
}

// TestARecordIsToldToWhoWantsMore of several listeners. A panic of one does not affect the others.
func TestARecordIsToldToWhoWantsMore(t *testing.T) {
	var got []string
	listener := func(name string, more bool) weir.Events {
		return weir.Events{
			Recorded: func(*weir.Record) bool { return more },
			Detailed: func(*weir.Record) { got = append(got, name); panic(name) },
		}
	}
	u := open(t, steady(), weir.Options{Events: weir.Tee(listener("a", true), weir.Events{}, listener("b", false), listener("c", true))})
	_, _ = do(background, u, answers(nil))
	if fmt.Sprint(got) != "[a c]" {
		t.Errorf("told %v, want a and c", got)
	}
}

func TestRecordEndsWithTheBodyOfTheAnswer(t *testing.T) {
	var got []string
	u := open(t, steady(), weir.Options{Events: note(&got)})
	r := u.Begin(background, weir.Call{})
	if !r.Next() {
		t.Fatal(r.Err())
	}
	r.ReportStart(outcome.Outcome{Class: outcome.OK})
	r.End()
	if r.Next() || len(got) != 0 {
		t.Errorf("told %q while the body comes, want nothing, and no other attempt", got)
	}
	for range 2 {
		r.ReportEnd(outcome.Outcome{Class: outcome.Failed, Code: "broken off"})
	}
	if len(got) != 1 || !strings.Contains(got[0], " failed n=1") {
		t.Errorf("told %q, want one call that failed", got)
	}
}

// Records are not reported if no listener wants them: for successful calls with one attempt, and for single
// decisions. All other records are reported to every listener. If one of several listeners wants a record, all get
// it.
func TestNobodyIsToldOfARecordThatIsNotWanted(t *testing.T) {
	var asked, told []string
	events := weir.Events{
		Wanted: func(id string, _ any, s weir.Sketch) bool {
			asked = append(asked, fmt.Sprint(id, " ", s.Class, " ", s.Refused))
			if id == "panics" {
				panic("not wanted")
			}
			return strings.HasPrefix(id, "wanted")
		},
		Recorded: func(r *weir.Record) bool { told = append(told, r.ID); return false },
	}
	p := unbounded()
	p.Retry.Attempts = 2
	p.Operations = []weir.Operation{{Name: "never"}}
	p.Limits = []limit.Limit{{Name: "never", Rate: bucket.Rate{Amount: 1, Per: 1000 * 3600 * sec}, Operations: []string{"never"}}}
	p.MaxWait = -1
	check := func(what string, u *weir.Upstream, wantAsked, wantTold string) {
		t.Helper()
		asked, told = nil, nil
		call := func(id string, errs ...error) {
			_, _ = weir.Do(background, u, weir.Call{ID: id, Safe: true}, answers(errs...).call)
		}
		failed := &bad{O: outcome.Outcome{Class: outcome.Failed, Hint: outcome.Hint{Said: true, After: ms}}}
		u.Try(weir.Call{Operation: "never"}, new(weir.Permit)) // its only decision
		asked, told = nil, nil
		call("well", nil)
		call("panics", nil)
		call("wanted", nil)
		call("retried", failed, nil)
		for _, id := range []string{"refused", "wanted to be refused"} {
			if u.Try(weir.Call{ID: id, Operation: "never"}, new(weir.Permit)).Allowed {
				t.Fatal("allowed")
			}
		}
		for _, id := range []string{"single", "wanted single"} {
			var permit weir.Permit
			u.Try(weir.Call{ID: id}, &permit)
			permit.Report(failed.O)
		}
		if got := strings.Join(asked, ", "); got != wantAsked {
			t.Errorf("%s: asked of %q, want %q", what, got, wantAsked)
		}
		if got := strings.Join(told, ", "); got != wantTold {
			t.Errorf("%s: told of %q, want %q", what, got, wantTold)
		}
	}
	few := "wanted, retried, wanted to be refused, wanted single"
	all := "well, panics, wanted, retried, refused, wanted to be refused, single, wanted single"
	each := "well ok false, panics ok false, wanted ok false, refused unknown true, wanted to be refused unknown true, single failed false, wanted single failed false"
	synctest.Test(t, func(t *testing.T) {
		check("alone", open(t, p, weir.Options{Events: events}), each, few)
		deaf := weir.Events{Wanted: func(string, any, weir.Sketch) bool { return true }} // it receives no record
		check("beside one that hears of none", open(t, p, weir.Options{Events: weir.Tee(events, deaf)}), each, few)
		check("beside one that wants all", open(t, p, weir.Options{Events: weir.Tee(events, weir.Events{Recorded: func(*weir.Record) bool { return false }})}), "", all)
	})
}
