package breaker_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// A call that Begin has counted counts once, for any result of End.
func TestEndTakesBackWhatBeginHasCounted(t *testing.T) {
	for _, c := range []struct {
		end  outcome.Class
		took time.Duration
		open bool
	}{
		{outcome.Failed, 0, true}, {outcome.Failed, 8 * time.Second, true}, {outcome.Failed, time.Minute, true},
		{outcome.OK, 0, false}, {outcome.OK, time.Minute, false}, {outcome.Canceled, time.Second, false},
	} {
		b := breaker.New("", breaker.Config{Share: 0.9, MinCalls: 20}, nil)
		now := time.Hour
		for range 30 {
			p, _, ok := b.Admit(now)
			if !ok {
				break
			}
			cell := b.Begin(-1, now, p)
			b.End(cell, now+c.took, now, p, outcome.Outcome{Class: c.end}, "")
		}
		if got := b.Look(now+c.took).Phase == breaker.Open; got != c.open {
			t.Errorf("30 calls that were %v after %v: open %v, want %v", c.end, c.took, got, c.open)
		}
	}
}

func TestEndCountsFailuresInARow(t *testing.T) {
	b := breaker.New("", breaker.Config{Consecutive: 3}, nil)
	for i, class := range []outcome.Class{outcome.Failed, outcome.Failed, outcome.OK, outcome.Failed, outcome.Failed, outcome.Canceled, outcome.Failed} {
		p, _, ok := b.Admit(0)
		if !ok {
			t.Fatalf("open before call %d", i)
		}
		b.End(b.Begin(-1, 0, p), 0, 0, p, outcome.Outcome{Class: class}, "")
	}
	if got := b.Look(0).Phase; got != breaker.Open {
		t.Errorf("after three failures in a row: %v, want open", got)
	}
}
