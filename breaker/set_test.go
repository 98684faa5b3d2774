package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

func TestSetConfigKeepsThePhase(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*breaker.Breaker)
		phase  breaker.Phase
		held   bool
	}{
		"unused":        {func(*breaker.Breaker) {}, breaker.Closed, false},
		"open":          {func(b *breaker.Breaker) { fail(b, 0, 5) }, breaker.Open, false},
		"half-open":     {func(b *breaker.Breaker) { fail(b, 0, 5); b.Admit(30 * time.Second) }, breaker.HalfOpen, false},
		"forced open":   {func(b *breaker.Breaker) { b.ForceOpen(0, 0) }, breaker.Open, true},
		"forced closed": {func(b *breaker.Breaker) { b.ForceClose(0) }, breaker.Closed, true},
	} {
		for _, to := range []breaker.Config{{Open: 20 * time.Second}, {Failures: 2}, {Share: 0.5}, {Window: time.Hour, Share: 0.1}} {
			var h heard
			b := breaker.New("up", five, h.add)
			c.before(b)
			want, told := b.Look(30*time.Second), len(h.list)
			b.SetConfig(30*time.Second, to)
			if got := b.Look(30 * time.Second); got.Phase != c.phase || got.Held != c.held || got.Until != want.Until || got.Gen != want.Gen {
				t.Errorf("%s, %+v: got %+v, want %+v", name, to, got, want)
			}
			if len(h.list) != told {
				t.Errorf("%s, %+v: told of %+v", name, to, h.list[told:])
			}
		}
	}
}

func TestSetConfigAppliesToWhatComesNext(t *testing.T) {
	b := breaker.New("up", five, nil)
	fail(b, 0, 3)
	b.SetConfig(0, breaker.Config{Failures: 4, Open: 7 * time.Second})
	fail(b, 0, 1)
	if v := b.Look(0); v.Phase != breaker.Open || v.Wait != 7*time.Second {
		t.Errorf("got %v for %v, want it open for 7s: the 3 failures before still count", v.Phase, v.Wait)
	}
	b.SetConfig(0, breaker.Config{Successes: 1})
	p, _, _ := b.Admit(7 * time.Second)
	b.Report(7*time.Second, p, outcome.Outcome{Class: outcome.OK})
	if v := b.Look(7 * time.Second); v.Phase != breaker.Closed {
		t.Errorf("one good probe leaves it %v", v.Phase)
	}
}

func TestABreakerThatIsTurnedOffCloses(t *testing.T) {
	var h heard
	b := breaker.New("up", five, h.add)
	fail(b, 0, 5)
	b.SetConfig(0, breaker.Config{Off: true})
	if _, _, ok := b.Admit(0); !ok || len(h.list) != 2 || h.list[1].To != breaker.Closed {
		t.Errorf("admitted %v, told of %+v", ok, h.list)
	}
	b.ForceOpen(0, time.Minute)
	b.SetConfig(0, breaker.Config{Off: true, Failures: 7})
	if _, wait, ok := b.Admit(0); ok || wait != time.Minute {
		t.Errorf("one that is forced open admits %v, waits %v", ok, wait)
	}
}

// Failures are not compared with successes that were not counted.
func TestAShareIsCountedAnew(t *testing.T) {
	b := breaker.New("up", breaker.Config{Failures: 1000}, nil)
	fail(b, 0, 50) // of thousands of calls
	b.SetConfig(0, breaker.Config{Share: 0.5})
	fail(b, 0, 19)
	if v := b.Look(0); v.Phase != breaker.Closed {
		t.Errorf("%v by failures of before", v.Phase)
	}
	fail(b, 0, 1)
	if v := b.Look(0); v.Phase != breaker.Open {
		t.Errorf("%v after 20 of 20 failed", v.Phase)
	}
}

func TestAShareGoesOnInTheSameWindow(t *testing.T) {
	b := breaker.New("up", breaker.Config{Share: 0.5}, nil)
	for range 100 {
		p, _, _ := b.Admit(0)
		b.Report(0, p, outcome.Outcome{Class: outcome.OK})
	}
	fail(b, 0, 50)
	b.SetConfig(0, breaker.Config{Share: 0.4})
	if v := b.Look(0); v.Failed != 50 {
		t.Errorf("%d failures, want 50", v.Failed)
	}
	fail(b, 0, 16)
	if v := b.Look(0); v.Phase != breaker.Closed {
		t.Errorf("%v with 66 failures of 166, want closed below 40%%", v.Phase)
	}
	fail(b, 0, 1)
	if v := b.Look(0); v.Phase != breaker.Open {
		t.Errorf("%v with 67 failures of 167, want open", v.Phase)
	}
}

func TestGroupSetConfigReachesEveryKey(t *testing.T) {
	g := breaker.NewGroup(2, five, nil)
	g.For(0, "forced").ForceOpen(0, 0)
	fail(g.For(0, "failing"), 0, 1)
	g.SetConfig(0, breaker.Config{Failures: 2})
	if keys(g)[breaker.Other] {
		t.Error("Other is listed before it was used")
	}
	if v := g.For(0, "forced").Look(0); v.Phase != breaker.Open || !v.Held {
		t.Errorf("the forced one is %+v", v)
	}
	fail(g.For(0, "failing"), 0, 1)
	fail(g.For(0, "other"), 0, 2)
	for _, key := range []string{"failing", "other"} {
		if v := g.For(0, key).Look(0); v.Phase != breaker.Open {
			t.Errorf("%s: %v, want open after 2 failures", key, v.Phase)
		}
	}
	later := g.For(time.Hour, "later")
	if fail(later, time.Hour, 2); later.Look(time.Hour).Phase != breaker.Open || later.Look(time.Hour).Key != "later" {
		t.Errorf("a key that comes later: %+v", later.Look(time.Hour))
	}
}

func TestSetConfigInACrowd(t *testing.T) {
	g := breaker.NewGroup(4, five, nil)
	g.For(0, "forced").ForceOpen(0, 0)
	crowd(2000, func(i int) {
		if i%10 == 0 {
			g.SetConfig(0, breaker.Config{Share: float64(i%3) / 4, Failures: 1 + i%7, Off: i%4 == 0})
		}
		b := g.For(0, fmt.Sprint(i%5))
		if p, _, ok := b.Admit(0); ok {
			b.Report(0, p, outcome.Outcome{Class: outcome.Class(1 + i%3)})
		}
	})
	if v := g.For(0, "forced").Look(0); v.Phase != breaker.Open || !v.Held {
		t.Errorf("the forced one is %+v", v)
	}
}
