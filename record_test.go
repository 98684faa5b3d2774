package weir_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// note has every record told in full.
func note(got *[]string) weir.Events {
	return weir.Events{
		Recorded: func(*weir.Record) bool { return true },
		Detailed: func(r *weir.Record) { *got = append(*got, told(r)) },
	}
}

// told is a Record in one line, with each attempt.
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

// TestARecordHasEachAttempt has the stories of the events told by records.
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

// TestARecordOfASingleDecision is that of Try and Acquire: refused, reported, and given up while it waited.
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

// TestARecordKeepsTheFirstAndTheLastAttempts of a call that has more than it holds.
func TestARecordKeepsTheFirstAndTheLastAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n := 1; n <= 10; n++ {
			p := unbounded()
			p.Retry.Attempts = n
			var got []int
			u := open(t, p, weir.Options{Events: weir.Events{Recorded: func(r *weir.Record) bool {
				for _, a := range r.Attempts() {
					got = append(got, a.N)
				}
				return false
			}}})
			_, _ = do(background, u, answers(&bad{O: outcome.Outcome{Class: outcome.Failed, Hint: outcome.Hint{Said: true, After: ms}}}))
			want := []int{}
			for i := 1; i <= n; i++ {
				if i <= 3 || i > n-3 {
					want = append(want, i)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("of %d attempts: %v, want %v", n, got, want)
			}
		}
	})
}

// TestARecordIsSmallAndUsedAgain: a record costs no allocation, whatever becomes of the call, and none is told twice.
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

// TestARecordIsToldToWhoWantsMore of several listeners, and a panic of one is not the others'.
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

// TestARecordEndsBeforeItsStream: what is left of a call when its answer has begun has no record, which another call may
// have by then.
func TestARecordEndsBeforeItsStream(t *testing.T) {
	var got []string
	u := open(t, steady(), weir.Options{Events: note(&got)})
	r := u.Begin(background, weir.Call{})
	if !r.Next() {
		t.Fatal(r.Err())
	}
	var rest weir.Permit
	r.Detach(&rest)
	r.Report(outcome.Outcome{Class: outcome.OK}, nil)
	r.End()
	rest.Report(outcome.Outcome{Class: outcome.Failed, Code: "broken off"})
	if len(got) != 1 || !strings.Contains(got[0], " ok n=1") {
		t.Errorf("told %q, want one call that went well", got)
	}
}
