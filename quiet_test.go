package weir_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// refusals records each reported refusal, and mutes itself as quiet returns.
func refusals(told *[]string, quiet func(weir.Refused) time.Duration) weir.Events {
	return weir.Events{
		Counts: func(*weir.Counts) {},
		Refused: func(e weir.Refused) time.Duration {
			*told = append(*told, fmt.Sprint(e.ID, " ", e.Untold))
			return quiet(e)
		},
	}
}

// refuses returns an upstream with two used-up limits: the first refuses all calls of one operation, the second all
// calls of another.
func refuses(t *testing.T, o weir.Options) *weir.Upstream {
	t.Helper()
	p := unbounded(rate("a", 1, 1000*sec, 1), rate("b", 1, 1000*sec, 1))
	p.Limits[0].Operations, p.Limits[1].Operations = []string{"one"}, []string{"two"}
	p.MaxWait = -1
	u := open(t, p, o)
	for _, operation := range []string{"one", "two"} {
		if !u.Try(weir.Call{Operation: operation}, new(weir.Permit)).Allowed {
			t.Fatal("refused at first")
		}
	}
	return u
}

// A muted listener gets the number of suppressed refusals per limit. A listener that is not muted gets each refusal.
func TestWhoIsQuietIsToldHowManyWereNotTold(t *testing.T) {
	second := func(e weir.Refused) time.Duration { return e.At + sec }
	for _, c := range []struct {
		what  string
		quiet func(weir.Refused) time.Duration
		want  []string
	}{
		{"quiet for a second", second, []string{"one 0", "two 0", "later 7", "other 7", "last 3"}},
		{"never quiet", func(weir.Refused) time.Duration { return 0 }, nil},
		{"until an instant that is over", func(e weir.Refused) time.Duration { return e.At - 1 }, nil},
		{"always", func(weir.Refused) time.Duration { return weir.Never }, []string{"one 0", "two 0"}},
		{"who panics wants all", func(weir.Refused) time.Duration { panic("all") }, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				u := refuses(t, weir.Options{Events: refusals(&told, c.quiet)})
				all := 0
				try := func(id, operation string, n int) {
					for range n {
						if u.Try(weir.Call{ID: id, Operation: operation}, new(weir.Permit)).Allowed {
							t.Fatal("allowed")
						}
						all++
					}
				}
				try("one", "one", 8)
				try("two", "two", 8)
				pass(sec)
				try("later", "one", 4)
				try("other", "two", 1)
				pass(sec)
				try("last", "one", 1)
				if c.want != nil && !slices.Equal(told, c.want) || c.want == nil && len(told) != all {
					t.Errorf("told of %q, want %q", told, c.want)
				}
			})
		})
	}
}

// With several listeners, one that is not muted gets each refusal.
func TestOneThatIsNotQuietIsToldBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var some, all []string
		u := refuses(t, weir.Options{Events: weir.Tee(
			refusals(&some, func(weir.Refused) time.Duration { return weir.Never }),
			refusals(&all, func(weir.Refused) time.Duration { return 0 }),
			refusals(&some, func(weir.Refused) time.Duration { return weir.Never }),
		)})
		for range 3 {
			u.Try(weir.Call{Operation: "one"}, new(weir.Permit))
		}
		if len(all) != 3 {
			t.Errorf("told of %d, want 3", len(all))
		}
	})
}

// Refusals of a custom gate are counted and reported like a limit's.
func TestAGateOfOnesOwnIsQuietToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		o := weir.Options{Gates: []weir.Gate{no{}}, Events: refusals(&told, func(e weir.Refused) time.Duration { return e.At + sec })}
		u := open(t, unbounded(), o)
		for range 3 {
			for range 5 {
				_, _ = u.Acquire(background, weir.Call{})
			}
			pass(sec)
		}
		if want := []string{" 0", " 4", " 4"}; !slices.Equal(told, want) {
			t.Errorf("told of %q, want %q", told, want)
		}
	})
}

// no is a gate that refuses.
type no struct{}

func (no) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) {
	return nil, &weir.Refusal{Reason: weir.Paused, Limit: "own", Rule: limit.Limit{Name: "own"}}
}

// Reported and suppressed refusals add up to all refusals, however many happen simultaneously.
func TestNoRefusalIsLostToTheQuiet(t *testing.T) {
	const callers, each = 8, 2000
	var heard atomic.Int64
	events := weir.Events{Counts: func(*weir.Counts) {}, Refused: func(e weir.Refused) time.Duration {
		heard.Add(1 + int64(e.Untold))
		if e.ID == "last" {
			return 0
		}
		return e.At + 10*time.Microsecond
	}}
	u := refuses(t, weir.Options{Events: events})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				u.Try(weir.Call{Operation: "one"}, new(weir.Permit))
			}
		})
	}
	wg.Wait()
	came := int64(callers * each)
	if got := heard.Load(); got > came {
		t.Errorf("%d were told of, or told not to have been, of %d", got, came)
	}
	for told := heard.Load(); heard.Load() == told; came++ { // the refusals since the last report
		u.Try(weir.Call{ID: "last", Operation: "one"}, new(weir.Permit))
	}
	if got := heard.Load(); got != came {
		t.Errorf("%d were told of, or told not to have been, of %d", got, came)
	}
}
