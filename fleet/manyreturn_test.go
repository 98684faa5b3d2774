package fleet

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// requests counts the requests and heartbeats that reach the store, by second of the history.
type requests struct{ takes, beats []int }

func (r *requests) count(at time.Duration, to *[]int) {
	for len(*to) <= int(at/sec) {
		*to = append(*to, 0)
	}
	(*to)[at/sec]++
}

// in returns how many arrived in a second.
func (r *requests) in(second int) (n int) {
	for _, all := range [][]int{r.takes, r.beats} {
		if second < len(all) {
			n += all[second]
		}
	}
	return n
}

// After an outage for many processes, every process is served within 10 s. In any 5 s the store gets at most twice
// as many requests as before.
func TestStoreReturnsToManyProcesses(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, n := range []int{100, 1000} {
		returnTo(t, n, 0.8, 30*sec)
	}
}

// The same holds after a long outage: two minutes, or 20 in a campaign.
func TestStoreReturnsToManyProcessesAfterLongOutage(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	returnTo(t, 200, 0.1, time.Duration(campaign.Of(2, 20))*time.Minute)
}

// returnTo simulates the return of a store to n processes after an outage of the length. Each process makes
// wants calls per second. The limit allows a quarter more.
func returnTo(t *testing.T, n int, wants float64, length time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		perSecond := int64(float64(n) * wants / 0.8)
		w := newOutage(t, 1, rate(perSecond, perSecond, sec))
		w.seen = new(requests)
		for range n {
			w.join(wants)
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
		// Nearly all processes with calls from the fifth second on are served by the tenth.
		starved := make(map[int]bool)
		for _, u := range w.wanted {
			if u.at >= back+5*sec && u.at < back+9*sec {
				starved[u.by] = true
			}
		}
		for _, u := range w.went {
			if u.at >= back && u.at < back+10*sec {
				delete(starved, u.by)
			}
		}
		if len(starved)*100 > n {
			t.Errorf("%d processes: %d of them were not served in the 10 s after the return", n, len(starved))
		}
		steady := 0
		for s := 5; s < 20; s++ {
			steady += w.seen.in(s)
		}
		steady /= 15
		// Calls are random, so five seconds are compared, with three standard deviations.
		for s := range 16 {
			got := 0
			for i := range 5 {
				got += w.seen.in(int(back/sec) + s + i)
			}
			if most := 2 * 5 * steady; got > most+int(3*math.Sqrt(float64(most))) {
				t.Errorf("%d processes: %d requests in the 5 s from second %d after the return, %d per second before", n, got, s, steady)
			}
		}
	})
}

// If many processes start at the same time, each gets its first unit within a second.
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
