package weir_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
)

// A jumpy store has a clock that jumps, which affects its stored times and its reported time.
type jumpy struct {
	fleet.Store
	by atomic.Int64
}

func (s *jumpy) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	all, now, err := s.Store.Load(ctx, group, names)
	return all, now.Add(time.Duration(s.by.Load())), err
}

func (s *jumpy) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	st, err := s.Store.Beat(ctx, b)
	st.Now = st.Now.Add(time.Duration(s.by.Load()))
	return st, err
}

func (s *jumpy) Take(ctx context.Context, a *fleet.Ask) error {
	err := s.Store.Take(ctx, a)
	a.Now = a.Now.Add(time.Duration(s.by.Load()))
	return err
}

// A process that knows a pause measures it with its own clock. If a process starts while the store's clock is wrong,
// it ignores pauses that are over by that clock, and applies the others at most for the longest pause.
func TestAPauseOutlastsAClockThatJumps(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		for _, right := range []bool{false, true} { // the clock is right again when the third process starts
			t.Run(fmt.Sprint(by, right), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &jumpy{Store: known(t)}
					p := everyPolicy["one for all"]
					call := weir.Call{Operation: "get"}
					a, b := join(t, s, p, fleet.Options{}), join(t, s, p, fleet.Options{})
					pass(3 * sec)
					begin := clock.System.Now()
					a.told(call, hinted(60*sec).O)
					pass(heardBy)
					s.by.Store(int64(by))
					pass(10 * sec)
					if right {
						s.by.Store(0)
					}
					c := join(t, s, p, fleet.Options{})
					pass(heardBy)
					held(t, 60*sec-since(begin), call, a, b)
					pass(2 * sec)
					if !a.goes(call) || !b.goes(call) {
						t.Error("the pause does not end")
					}
					if right || by > 0 {
						if !c.goes(call) {
							t.Error("who came later is held")
						}
						return
					}
					held(t, 10*time.Minute, call, c)
					pass(5 * time.Minute)
					if !c.goes(call) {
						t.Error("who came later is held for longer than any pause lasts")
					}
				})
			})
		}
	}
}
