package fleet

import (
	"testing"
	"testing/synctest"
	"time"
)

// requests counts what arrives at the store, by second of the history.
type requests struct{ takes, beats []int }

func (r *requests) count(at time.Duration, to *[]int) {
	for len(*to) <= int(at/sec) {
		*to = append(*to, 0)
	}
	(*to)[at/sec]++
}

// in returns how many requests arrived in a second.
func (r *requests) in(second int) (n int) {
	for _, all := range [][]int{r.takes, r.beats} {
		if second < len(all) {
			n += all[second]
		}
	}
	return n
}

// When the store returns to many processes, all of them are served within 10 s, and it receives at most twice as many requests
// as before.
func TestStoreReturnsToManyProcesses(t *testing.T) {
	length := 30 * sec
	if *table {
		length = time.Hour
	}
	for _, n := range []int{100, 1000} {
		synctest.Test(t, func(t *testing.T) {
			w := newOutage(t, 1, rate(int64(n), int64(n), sec))
			w.seen = new(requests)
			for range n {
				w.join(0.8)
			}
			from, back := 20*sec, 20*sec+length
			away(from, back, false)(w)
			w.end(back + 20*sec)
			if over, where := w.over(); over > 0 {
				t.Errorf("%d processes: over by %d %s", n, over, where)
			}
			if used, wanted := w.used(back+5*sec, back+10*sec), count(w.wanted, back+5*sec, back+10*sec); used*100 < wanted*95 {
				t.Errorf("%d processes: %d of %d calls served from 5 to 10 s after the return", n, used, wanted)
			}
			served := make(map[int]bool)
			for _, u := range w.went {
				if u.at >= back && u.at < back+10*sec {
					served[u.by] = true
				}
			}
			if len(served)*100 < n*99 { // some have made no call
				t.Errorf("%d processes: %d served in the 10 s after the return", n, len(served))
			}
			steady := 0
			for s := 5; s < 20; s++ {
				steady += w.seen.in(s)
			}
			steady /= 15
			for s := range 20 {
				if got := w.seen.in(int(back/sec) + s); got > 2*steady {
					t.Errorf("%d processes: %d requests in second %d after the return, %d before", n, got, s, steady)
				}
			}
		})
	}
}

// Of many processes that start at once none waits longer than a second for its first unit.
func TestManyProcessesStartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOutage(t, 1, rate(1000, 1000, sec))
		for range 200 {
			w.join(4)
		}
		w.end(5 * sec)
		if over, where := w.over(); over > 0 {
			t.Errorf("over by %d %s", over, where)
		}
		if used, wanted := w.used(0, sec), count(w.wanted, 0, sec); used*100 < wanted*95 {
			t.Errorf("%d of %d calls served in the first second", used, wanted)
		}
	})
}
