package fleet

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
)

// The store fails when a rolling limit is younger than its window. Processes use their reserves, and the limit
// is not exceeded.
func TestYoungRollingLimitIsServedDuringOutage(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, age := range []time.Duration{5 * sec, 20 * sec, 40 * sec} {
		for _, n := range []int{1, 4, 8} {
			for _, demand := range []float64{30, 80, 200} {
				t.Run(fmt.Sprintf("age %v, %d processes, demand %v%%", age, n, demand), func(t *testing.T) {
					// A process adjusts its reserve when it is a quarter too large or too small, so the reserves at the
					// beginning of the outage vary: about one history in a hundred serves fewer calls. The next ones must
					// make up for it.
					var used, wanted, least int64
					for seed := uint64(1); seed == 1 || seed <= 3 && used < least; seed++ {
						synctest.Test(t, func(t *testing.T) {
							u, w, l := servesYoung(t, seed, age, n, demand)
							if used, wanted, least = used+u, wanted+w, least+l; u < l*85/100 {
								t.Errorf("history %d: %d of %d calls served, want %d", seed, u, w, l*85/100)
							}
						})
					}
					if t.Logf("%d of %d calls served", used, wanted); used < least {
						t.Errorf("%d of %d calls served, want %d", used, wanted, least)
					}
				})
			}
		}
	}
}

// servesYoung plays such an outage. It returns how many calls were served and wanted during it, and the least number to serve.
func servesYoung(t *testing.T, seed uint64, age time.Duration, processes int, demand float64) (used, wanted, least int64) {
	w := newOutage(t, seed, rollingLimit(6000, 60*sec))
	for range processes {
		w.join(demand / float64(processes))
	}
	away(age, age+30*sec, false)(w)
	w.end(age + 100*sec)
	if over, where := w.over(); over > 0 {
		t.Errorf("over by %d %s", over, where)
	}
	used, wanted = w.used(age, age+30*sec), count(w.wanted, age, age+30*sec)
	// At most, the limit allows the units that were not used before.
	share := map[time.Duration]int64{5 * sec: 70, 20 * sec: 75, 40 * sec: 85}[age]
	ofLeft := map[time.Duration]int64{5 * sec: 43, 20 * sec: 70, 40 * sec: 65}[age]
	return used, wanted, min(share*wanted, ofLeft*max(0, 6000-w.used(0, age))) / 100
}

// The limit holds in random histories that are hardly longer than the window. Processes are cut off and killed,
// and emptied stores return, while processes have reserves.
func TestNothingIsOverInHistoriesOfYoungRollingLimits(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, goes := range []bool{false, true} {
		t.Run(fmt.Sprint("going on ", goes), func(t *testing.T) {
			t.Parallel()
			n := campaign.Histories(16, 40)
			if *histories > 0 {
				n = *histories
			}
			playHistories(t, limit.Rolling, n, goes, false, func(w *outage, r *rand.Rand) {
				seconds := 20 + r.Int64N(40)
				w.limit = rollingLimit(w.limit.Amount*seconds/int64(w.limit.Per/sec), time.Duration(seconds)*sec)
				if r.IntN(2) == 0 {
					twist(w, r, goes)
				}
			})
		})
	}
}
