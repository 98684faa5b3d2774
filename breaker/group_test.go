package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

func keys(g *breaker.Group) map[string]bool {
	m := map[string]bool{}
	for k := range g.All() {
		m[k] = true
	}
	return m
}

func TestGroupKeepsKeysApart(t *testing.T) {
	var h heard
	g := breaker.NewGroup(0, five, h.add)
	fail(g.For(0, "bad"), 0, 5)
	if _, _, admitted := g.For(0, "bad").Admit(0); admitted {
		t.Error("bad was admitted")
	}
	if _, _, admitted := g.For(0, "good").Admit(0); !admitted {
		t.Error("good was refused")
	}
	if len(h.list) != 1 || h.list[0].Key != "bad" {
		t.Errorf("got changes %+v, want one, of bad", h.list)
	}
	if len(keys(g)) != 2 {
		t.Errorf("got keys %v", keys(g))
	}
}

func TestGroupStaysBounded(t *testing.T) {
	g := breaker.NewGroup(100, five, nil)
	for i := range 10_000 {
		g.For(time.Duration(i), fmt.Sprint(i))
	}
	if n := len(keys(g)); n > 100 || n < 50 || keys(g)[breaker.Other] {
		t.Errorf("got %d keys, want up to 100 and not Other", n)
	}
}

func TestGroupKeepsKeysInTrouble(t *testing.T) {
	g := breaker.NewGroup(16, five, nil)
	fail(g.For(0, "open"), 0, 5)
	fail(g.For(0, "failing"), 0, 1)
	g.For(0, "held").ForceClose(0)
	for i := range 1000 {
		g.For(time.Second, fmt.Sprint(i))
	}
	for _, k := range []string{"open", "failing", "held"} {
		if !keys(g)[k] {
			t.Errorf("%s was evicted", k)
		}
	}
}

func TestGroupForgetsTroubleThatIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		trouble func(*breaker.Breaker)
		over    bool
	}{
		"failing":   {func(b *breaker.Breaker) { fail(b, 0, 4) }, true},
		"open":      {func(b *breaker.Breaker) { fail(b, 0, 5) }, true},
		"half-open": {func(b *breaker.Breaker) { fail(b, 0, 5); b.Admit(30 * time.Second) }, true},
		"forced":    {func(b *breaker.Breaker) { b.ForceClose(0) }, false},
	} {
		g := breaker.NewGroup(1, five, nil)
		tc.trouble(g.For(0, name))
		if v := g.For(30*time.Second, "new").Look(0); v.Key != breaker.Other {
			t.Errorf("%s: was evicted at once", name)
		}
		if v := g.For(time.Hour, "new").Look(0); (v.Key == "new") != tc.over {
			t.Errorf("%s: after an hour the new key has the breaker %q", name, v.Key)
		}
	}
}

func TestGroupKeepsKeysInUse(t *testing.T) {
	g := breaker.NewGroup(16, five, nil)
	busy := g.For(0, "busy")
	for i := range 1000 {
		if g.For(0, "busy") != busy {
			t.Fatalf("busy was evicted by key %d", i)
		}
		g.For(0, fmt.Sprint(i))
	}
}

func TestFullGroupSharesOneBreaker(t *testing.T) {
	g := breaker.NewGroup(8, five, nil)
	for i := range 8 {
		fail(g.For(0, fmt.Sprint(i)), 0, 5)
	}
	a, b := g.For(0, "a"), g.For(0, "b")
	if a != b {
		t.Error("a and b have breakers of their own in a full group")
	}
	fail(a, 0, 5)
	if v := b.Look(0); v.Phase != breaker.Open || v.Key != breaker.Other || !keys(g)[breaker.Other] {
		t.Errorf("got %+v, want the open breaker of all others", v)
	}
	if v := g.For(time.Hour, "a").Look(time.Hour); v.Key != "a" {
		t.Errorf("an hour later a shares the breaker %q", v.Key)
	}
}

func TestGroupGivesACrowdOneBreaker(t *testing.T) {
	g := breaker.NewGroup(0, five, nil)
	got := make([]*breaker.Breaker, 1000)
	crowd(len(got), func(i int) { got[i] = g.For(0, fmt.Sprint(i%10)) })
	for i := range got {
		if got[i] != got[i%10] {
			t.Fatalf("call %d got a breaker of its own", i)
		}
	}
}
