package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A faultScript has one crash and one partition, at messages of processes.
type faultScript struct {
	crashes, crashAt    int  // the process, and its message before which it crashes
	cut, cutFrom, cutTo int  // the process, and its first and last message that is lost
	up                  bool // requests are lost, or else responses
}

// fate returns which direction of a message is lost.
func (s *faultScript) fate(m *member) (up, down bool) {
	if m.id == s.crashes && m.messages >= s.crashAt {
		m.dead = true
		return true, true
	}
	lost := m.id == s.cut && m.messages >= s.cutFrom && m.messages <= s.cutTo
	return lost && s.up, lost && !s.up
}

// play plays four seconds of three processes with two keys.
func (s *faultScript) play(t testing.TB) *faulty {
	f := newFaulty(1, limit.Limit{Name: "l0", Unit: "units", Scope: "tenant", Rate: bucket.Rate{Amount: 2, Per: time.Second, Burst: 3}})
	defer f.world.Close()
	f.script, f.options.Outage = s, 2*time.Second
	for range 3 {
		m := f.join(t, 1)
		for i := range 4 {
			for k := range 2 {
				when := time.Duration(m.id*70+i*900+k*31) * time.Millisecond
				f.world.Go(func() {
					_ = f.world.Clock().Sleep(context.Background(), when)
					m.call(work{key: fmt.Sprint(k), reserves: []int64{2}, costs: []int64{1}, lasts: 50 * time.Millisecond})
				})
			}
		}
	}
	if err := f.world.RunUntil(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	return f
}

// A small fleet keeps its limits whichever process crashes at any of its messages, and whichever messages one process
// loses in either direction. make soak plays all combinations.
func TestSmallFleetUnderEveryCrashAndPartition(t *testing.T) {
	raced.Skip(t, "its goroutines take turns")
	calm := (&faultScript{crashes: -1, cut: -1}).play(t)
	played, each := 0, campaign.Of(1000, 100)
	if campaign.Histories(0, 1) >= 20 {
		each = 1
	}
	for _, crashed := range calm.members {
		for crashAt := range crashed.messages + 1 {
			for _, cut := range calm.members {
				for from := range cut.messages {
					for to := from; to < cut.messages; to++ {
						for _, up := range []bool{true, false} {
							if played++; played%each != 0 {
								continue
							}
							s := &faultScript{crashed.id, crashAt, cut.id, from, to, up}
							if over := s.play(t).over(); over > 0 {
								t.Errorf("%+v: %d over", *s, over)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d of %d combinations; %d calls without faults", played/each, played, len(calm.used))
}
