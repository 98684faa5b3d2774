package storetest

import (
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// again returns a repeat of an ask, as a process sends it that got no answer.
func again(a *fleet.Ask) *fleet.Ask {
	return &fleet.Ask{Group: a.Group, ID: a.ID, Lane: a.Lane, Again: true, Settle: a.Settle, Copies: a.Copies, Claims: a.Claims}
}

func (w *world) wantSame(got, want *fleet.Ask) {
	w.Helper()
	if got.Granted != want.Granted || len(got.Grants) != len(want.Grants) {
		w.Fatalf("the repeat got %d copies and %d grants, the first %d and %d", got.Granted, len(got.Grants), want.Granted, len(want.Grants))
	}
	for i := range got.Grants {
		if got.Grants[i].Extra != want.Grants[i].Extra {
			w.Errorf("the repeat got %d extra, the first %d", got.Grants[i].Extra, want.Grants[i].Extra)
		}
	}
}

func repeated(w *world) {
	w.each(slowOf(20), func(w *world, s *shape) {
		k := s.claim(w.now(), 1)
		k.Extra = 3
		other := rollingOf("other", 9, time.Hour).claim(w.now(), 2)
		first := w.ask(4, k, other)
		repeat := again(first)
		w.do(first)
		left := w.another().left(k)
		for range 3 {
			w.wantSame(w.do(again(repeat)), first)
		}
		for i, g := range w.do(again(repeat)).Grants {
			if g.Mark != (fleet.Mark{}) && g.Mark != first.Grants[i].Mark {
				w.Errorf("a repeat got the mark %+v, want %+v or none", g.Mark, first.Grants[i].Mark)
			}
		}
		w.another().wantLeft(k, left, "after repeats")
		w.another().wantLeft(other, 1, "after repeats")
	})
}

func repeatedSettlement(w *world) {
	w.each(slowOf(20), func(w *world, s *shape) {
		now := w.now()
		k := s.claim(now, 1)
		mark := w.must(10, k).Grants[0].Mark
		a := w.ask(2, k)
		a.Settle = []fleet.Settlement{s.settlement(now, 3, mark), s.settlement(now, 0, fleet.Mark{})}
		a.Settle[1].Owe = 1
		repeat := again(a)
		w.do(a)
		w.another().wantLeft(k, 10+3-1-2, "after the first")
		w.wantSame(w.do(repeat), a)
		w.another().wantLeft(k, 10, "after the repeat")
	})
}

func repeatOfNothing(w *world) {
	w.each(slowOf(20), func(w *world, s *shape) {
		k := s.claim(w.now(), 1)
		w.must(2, k)
		a := again(w.ask(5, k))
		if w.do(a); a.Granted != 5 {
			w.Errorf("granted %d copies, want 5", a.Granted)
		}
		w.wantSame(w.do(again(a)), a)
		w.wantLeft(k, 13, "after a repeat of nothing and its repeat")
	})
}

// lateOriginal delivers the first call after its repeat. If the store executed the first call now, it would return
// the settled units twice.
func lateOriginal(w *world) {
	w.each(slowOf(20), func(w *world, s *shape) {
		now := w.now()
		k := s.claim(now, 1)
		mark := w.must(10, k).Grants[0].Mark
		late := w.ask(2, k)
		late.Settle = []fleet.Settlement{s.settlement(now, 3, mark)}
		w.do(again(late))
		if err := w.try(late); err == nil && late.Granted > 2 {
			w.Errorf("granted %d copies, want 2", late.Granted)
		}
		w.another().wantLeft(k, 11, "after the repeat and then the first")
	})
}

func lanesApart(w *world) {
	k := bucketOf("bucket", 1, 100*time.Hour, 100).claim(w.now(), 1)
	var asks []*fleet.Ask
	var clients []*client
	for i := range int64(20) {
		c := w.client.another()
		a := c.ask(i%5+1, k)
		c.do(a)
		asks, clients = append(asks, a), append(clients, c)
	}
	left := w.left(k)
	for i, a := range asks {
		w.wantSame(clients[i].do(again(a)), a)
	}
	w.wantLeft(k, left, "after a repeat in each lane")
}
