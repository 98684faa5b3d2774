package weir_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
)

// before is a store that does something before each ask.
type before struct {
	fleet.Store
	do func()
}

func (s *before) Take(ctx context.Context, a *fleet.Ask) error {
	if s.do != nil {
		s.do()
	}
	return s.Store.Take(ctx, a)
}

// A call that gets what it asks of the store as its breaker opens is refused, and gives it back.
func TestABreakerThatOpensAsTheStoreAnswersIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &before{Store: fleet.NewMemory(nil)}
		p := steady(rate("all", 100, sec, 100))
		p.Breaker, p.MaxWait = breaker.Config{Consecutive: 3, Open: time.Hour}, sec
		u := open(t, p, weir.Options{Fleet: fleet.New(s, fleet.Options{Lease: -1})})
		var sent []*weir.Permit
		for range 3 {
			sent = append(sent, new(weir.Permit))
			if d := u.Try(weir.Call{}, sent[len(sent)-1]); !d.Allowed {
				t.Fatal(d)
			}
		}
		s.do = func() {
			s.do = nil
			pass(ms)
			for _, p := range sent {
				p.Report(errFailed.O)
			}
		}
		_, err := u.Acquire(background, weir.Call{})
		if r := refusal(t, err); r.Reason != weir.CircuitOpen {
			t.Errorf("got %v, want circuit_open", err)
		}
	})
}
