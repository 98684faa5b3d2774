package board_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// The page shows the live processes, this process's part of each limit, its leases, the state of the store, and the
// consequences of an outage.
func TestThePageShowsTheFleet(t *testing.T) {
	s := open(t, policy, "up")
	f := &status.Fleet{
		Store: "redis", Client: "weir-1", Instances: 3, Leased: map[string]int64{"up": 17},
		Found: &status.Found{Reached: true, Cold: []status.Cold{{Upstream: "up", Limit: "calls", LastsMS: 90_000}}},
		Parts: []status.Part{{Upstream: "up", State: "heard", Part: 0.3333, LastsMS: 300_000, Silent: 0.25, Unknown: 0.1, UnknownMS: 60_000}},
	}
	s.board.Page.Fleet = func() *status.Fleet { return f }
	says := func(all ...string) {
		t.Helper()
		_, page := s.get("/")
		page = bare(page)
		for _, want := range all {
			if !strings.Contains(page, want) {
				t.Errorf("the page does not say %q", want)
			}
		}
	}
	says("Limits are shared through redis. 3 processes are alive. This one is weir-1.", "● The store answers.", `<td>up<td><span class="state ok">● heard</span><td>33.3%<td>5m0s<td>17<td>25%, 10% of it since before the store was emptied, for 1m0s`,
		"up: the store is cold", "calls for at most 1m30s more")
	f.AwayMS, f.Why, f.Spent, f.Parts[0].State = 5000, "connection <refused>", 12, "cut_off"
	says("The store has not answered for 5s: connection &lt;refused&gt;. This process uses its own part of each limit, and has used 12 units since.", `<td><span class="state open">■ cut_off`)
	f.AwayMS, f.Instances, f.Found.Error = 0, 1, "it wants a password"
	says("No other process is known. This one is weir-1", "did not answer the last check: it wants a password")
}

// The page shows how much of a leased limit's burst is held back.
func TestThePageShowsWhatLeasesHoldBack(t *testing.T) {
	s := open(t, policy)
	shared := weir.Policy{Limits: []limit.Limit{{Name: "calls", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}}}
	u, err := weir.New("up", shared, weir.Options{Fleet: fleet.New(fleet.NewMemory(nil), fleet.Options{Lease: 250 * time.Millisecond})})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	s.up["up"] = u
	if _, page := s.get("/?open=up"); !strings.Contains(bare(page), "of 74, 26 held back<td>") {
		t.Error("the page does not say that 26 of 100 are held back")
	}
}
