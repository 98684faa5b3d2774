package stored_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

type job struct{ done chan struct{} }

// Callers that return immediately after their answer form one group. Next waits only for as many as there are.
func TestCallersWhoComeAgainAreOneGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, rounds, flush = 20, 10, time.Millisecond
		g, stop := stored.NewGatherer[*job](64, time.Hour), make(chan struct{})
		var groups []int
		var ended, all sync.WaitGroup
		ended.Go(func() {
			for group := g.Next(stop); group != nil; group = g.Next(stop) {
				groups = append(groups, len(group))
				time.Sleep(flush)
				g.Answers(len(group))
				for _, j := range group {
					close(j.done)
				}
			}
		})
		begin := time.Now()
		for range callers {
			all.Go(func() {
				for range rounds {
					j := &job{make(chan struct{})}
					g.Add(j)
					<-j.done
				}
			})
		}
		all.Wait()
		took := time.Since(begin)
		close(stop)
		ended.Wait()
		// The first group contains only the first caller. The next one waits for as many again, for at most a quarter
		// of a flush.
		if len(groups) > rounds+2 || took > (rounds+2)*flush+flush/2 {
			t.Errorf("groups of %v in %v", groups, took)
		}
		if !slices.Contains(groups, callers) {
			t.Errorf("no group is of all: %v", groups)
		}
	})
}

// Next waits for a caller that does not return for at most a quarter of a group's time. Groups have a maximum size.
func TestWhoDoesNotComeIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, stop := stored.NewGatherer[*job](3, time.Hour), make(chan struct{})
		for range 5 {
			g.Add(&job{})
		}
		first := g.Next(stop)
		time.Sleep(8 * time.Millisecond)
		g.Answers(len(first))
		begin := time.Now()
		second := g.Next(stop)
		if took := time.Since(begin); len(first) != 3 || len(second) != 2 || took != 2*time.Millisecond {
			t.Errorf("groups of %d and %d, the second after %v more; want 3 and 2 after 2ms", len(first), len(second), took)
		}
	})
}

// A job can be taken back until it is in a group. Next returns no group after stop is closed.
func TestTakenBack(t *testing.T) {
	g, stop := stored.NewGatherer[*job](64, time.Hour), make(chan struct{})
	a, b := &job{}, &job{}
	g.Add(a)
	g.Add(b)
	if !g.TakeBack(a) || g.TakeBack(a) {
		t.Error("it is taken back once")
	}
	if group := g.Next(stop); len(group) != 1 || group[0] != b || g.TakeBack(b) {
		t.Errorf("group %v", group)
	}
	g.Add(a)
	close(stop)
	if group := g.Next(stop); group != nil {
		t.Errorf("begun after the end: %v", group)
	}
}

// Another goroutine can take up to a group of jobs. The rest stays in order.
func TestSomeAreTakenByAnother(t *testing.T) {
	g, stop := stored.NewGatherer[int](3, time.Hour), make(chan struct{})
	for n := range 10 {
		g.Add(n)
	}
	even := func(n int) bool { return n%2 == 0 }
	if some := g.TakeSome(even); !slices.Equal(some, []int{0, 2, 4}) {
		t.Errorf("%v are taken", some)
	}
	if g.TakeSome(even); g.Waiting(even) || !g.Waiting(func(n int) bool { return n == 9 }) {
		t.Error("what was taken waits, or what was not does not")
	}
	if group := g.Next(stop); !g.Ready(stop) || !slices.Equal(group, []int{1, 3, 5}) {
		t.Errorf("the next group is %v", group)
	}
}
