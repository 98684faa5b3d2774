package weir_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit/adaptive"
)

// A diary records events as short lines.
type diary []string

func (d *diary) note(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

func (d *diary) events() weir.Events {
	return weir.Events{
		Decided: func(e weir.Decided) {
			why := "go"
			if e.Refusal != nil {
				why = string(e.Refusal.Reason)
			}
			d.note("decided %s %s %s", why, e.Limit, e.Waited)
		},
		Ended:   func(e weir.Ended) { d.note("ended %d %v %v", e.Attempt, e.Outcome.Class, e.Took) },
		Retried: func(e weir.Retried) { d.note("retried %d after %v: %v", e.Attempt, e.After, e.Err) },
		GaveUp:  func(e weir.GaveUp) { d.note("gave up %d: %v", e.Attempts, e.Err) },
		Done: func(e weir.Done) {
			d.note("done %d %v refused=%v %v %v", e.Attempts, e.Class, e.Refused, e.Took, e.Waited)
		},
		Breaker: func(e weir.BreakerEvent) { d.note("breaker %v %v", e.To, e.For) },
		Paused:  func(e weir.PauseEvent) { d.note("paused %s %v of %v", e.Limit, e.For, e.Hint) },
		Paced:   func(e weir.PaceEvent) { d.note("paced %s %v %v", e.Limit, e.PerSecond, e.Class) },
	}
}

// stories are calls with their events.
var stories = []struct {
	name    string
	change  func(*weir.Policy)
	answers []error
	want    []string
}{
	{"success", nil, []error{nil}, []string{"decided go  0s", "ended 1 ok 0s", "done 1 ok refused=false 0s 0s"}},
	{"retry", nil, []error{errFailed, nil}, []string{
		"decided go  0s", "ended 1 failed 0s", "retried 1 after 100ms: upstream: failed broken",
		"decided go  0s", "ended 2 ok 0s", "done 2 ok refused=false 100ms 100ms"}},
	{"give up", func(p *weir.Policy) { p.Retry.Attempts = 1 }, []error{errFailed}, []string{
		"decided go  0s", "ended 1 failed 0s", "gave up 1: upstream: failed broken", "done 1 failed refused=false 0s 0s"}},
	{"rejected", nil, []error{errRejected}, []string{"decided go  0s", "ended 1 rejected 0s", "done 1 rejected refused=false 0s 0s"}},
	{"breaker", func(p *weir.Policy) { p.Breaker = breaker.Config{Failures: 1} }, []error{errFailed}, []string{
		"decided go  0s", "ended 1 failed 0s", "retried 1 after 100ms: upstream: failed broken",
		"decided go  0s", "ended 2 failed 0s", "retried 2 after 200ms: upstream: failed broken",
		"decided go  0s", "ended 3 failed 0s", "gave up 3: upstream: failed broken", "breaker open 1s", "done 3 failed refused=false 300ms 300ms"}},
	{"throttle", func(p *weir.Policy) {
		p.Limits = append(p.Limits, rate("all", 10, sec, 0))
		p.Limits[0].Adaptive = adaptive.Config{On: true}
		p.Retry.Attempts = 1
	}, []error{hinted(2 * sec)}, []string{
		"decided go  0s", "ended 1 throttled 0s", "paced all 7 throttled", "paused all 2s of 2s", "gave up 1: upstream: throttled slow down",
		"done 1 throttled refused=false 0s 0s"}},
	{"refused", func(p *weir.Policy) { p.Limits = append(p.Limits, rate("all", 1, 1000*sec, 1)) }, []error{errFailed}, []string{
		"decided go  0s", "ended 1 failed 0s", "retried 1 after 100ms: upstream: failed broken",
		"decided rate_limited all 0s", "gave up 1: upstream: failed broken", "done 1 failed refused=true 100ms 100ms"}},
}

func TestEventsTellTheStory(t *testing.T) {
	for _, c := range stories {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := steady()
				if c.change != nil {
					c.change(&p)
				}
				var d diary
				_, _ = do(background, open(t, p, weir.Options{Events: d.events()}), answers(c.answers...))
				if !slices.Equal(d, c.want) {
					t.Errorf("\ngot  %q\nwant %q", []string(d), c.want)
				}
			})
		})
	}
}

// A panic in a listener changes neither the caller's result nor the gates' reports.
func TestPanickingListenerHarmsNothing(t *testing.T) {
	panics := weir.Events{
		Decided: func(weir.Decided) { panic(1) }, Ended: func(weir.Ended) { panic(1) }, Retried: func(weir.Retried) { panic(1) },
		GaveUp: func(weir.GaveUp) { panic(1) }, Done: func(weir.Done) { panic(1) }, Breaker: func(weir.BreakerEvent) { panic(1) },
		Paused: func(weir.PauseEvent) { panic(1) }, Paced: func(weir.PaceEvent) { panic(1) },
	}
	for _, c := range stories {
		synctest.Test(t, func(t *testing.T) {
			p := steady()
			if c.change != nil {
				c.change(&p)
			}
			var d diary
			book, quiet := &ledger{}, &ledger{}
			_, want := do(background, open(t, p, weir.Options{Gates: []weir.Gate{quiet}}), answers(c.answers...))
			_, got := do(background, open(t, p, weir.Options{Events: weir.Tee(panics, d.events()), Gates: []weir.Gate{book}}), answers(c.answers...))
			if fmt.Sprint(got) != fmt.Sprint(want) || *book != *quiet || book.Check() != nil {
				t.Errorf("%s: got %v and %+v, want %v and %+v", c.name, got, book, want, quiet)
			}
			if !slices.Equal(d, c.want) {
				t.Errorf("%s: the other listener heard %q, want %q", c.name, []string(d), c.want)
			}
		})
	}
}

func TestDecidedNamesTheLimitThatMadeItWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		u := open(t, steady(rate("fast", 1000, sec, 0), rate("slow", 1, sec, 1)), weir.Options{Events: weir.Events{Decided: d.events().Decided}})
		for range 2 {
			_, _ = do(background, u, answers(nil))
		}
		if want := []string{"decided go  0s", "decided go slow 1s"}; !slices.Equal(d, want) {
			t.Errorf("got %q, want %q", []string(d), want)
		}
	})
}

func TestTeeOfNothingHearsNothing(t *testing.T) {
	if e := weir.Tee(weir.Events{}, weir.Events{}); !reflect.ValueOf(e).IsZero() {
		t.Errorf("got %+v, want no functions", e)
	}
}

func TestIDIsInEveryEvent(t *testing.T) {
	var ids []string
	u := open(t, steady(), weir.Options{Events: weir.Events{
		Decided: func(e weir.Decided) { ids = append(ids, e.ID) },
		Ended:   func(e weir.Ended) { ids = append(ids, e.ID) },
		Done:    func(e weir.Done) { ids = append(ids, e.ID) },
	}})
	_, _ = weir.Do(background, u, weir.Call{ID: "x"}, answers(nil).call)
	if !slices.Equal(ids, []string{"x", "x", "x"}) {
		t.Errorf("got %q", ids)
	}
}
