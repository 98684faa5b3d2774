package runs_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/runs"
)

func TestRunCountsCallsAndRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table runs.Table
		began := time.Now()
		for _, by := range []string{"", "", "run-calls"} {
			table.Begin("r1")
			time.Sleep(time.Second)
			table.End("r1", "search", by)
		}
		table.Add("r1", 1500, 10_500, true)
		table.Add("r1", 70, 0, false)
		all, dropped := table.Latest(10)
		want := []runs.Run{{
			Name: "r1", First: began, Last: began.Add(3 * time.Second), Calls: 2, Tokens: 1570, Dollars: 10_500, Unpriced: 1,
			Tools: map[string]int64{"search": 2}, Refused: 1, RefusedBy: map[string]int64{"run-calls": 1},
		}}
		if !reflect.DeepEqual(all, want) || dropped != 0 {
			t.Errorf("got %+v, %d dropped, want %+v", all, dropped, want)
		}
	})
}

// The table keeps 200 runs. A new run replaces the one without a call for the longest time, but not one with a call in
// flight. The names of tools and limits of a run are bounded as well.
func TestTableDropsRunThatIsIdleLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table runs.Table
		table.Begin("in flight")
		for i := range 300 {
			time.Sleep(time.Millisecond)
			name := fmt.Sprint("run ", i)
			table.Begin(name)
			table.End(name, "", "")
			table.Begin("busy")
			table.End("busy", fmt.Sprint("tool ", i), "")
			table.Begin("busy")
			table.End("busy", "", fmt.Sprint("limit ", i))
		}
		all, dropped := table.Latest(1000)
		known := make(map[string]runs.Run)
		for _, r := range all {
			known[r.Name] = r
		}
		if len(all) != 200 || dropped != 102 {
			t.Errorf("%d runs, %d dropped, want 200 and 102", len(all), dropped)
		}
		for name, want := range map[string]bool{"in flight": true, "busy": true, "run 299": true, "run 102": true, "run 101": false} {
			if _, ok := known[name]; ok != want {
				t.Errorf("%s is in the table: %t, want %t", name, ok, want)
			}
		}
		busy := known["busy"]
		if len(busy.Tools) != 21 || busy.Tools[runs.Other] != 280 || len(busy.RefusedBy) != 21 || busy.RefusedBy[runs.Other] != 280 || busy.Calls != 300 || busy.Refused != 300 {
			t.Errorf("the busy run is %+v", busy)
		}
		if few, _ := table.Latest(1); len(few) != 1 || few[0].Name != "busy" && few[0].Name != "run 299" {
			t.Errorf("the latest run is %+v", few)
		}
	})
}

func TestTableCountsCallsAtTheSameTime(t *testing.T) {
	var table runs.Table
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				table.Begin("r")
				table.End("r", "tool", "")
				table.Add("r", 1, 2, true)
				table.Latest(1)
			}
		})
	}
	all.Wait()
	if r, _ := table.Latest(1); r[0].Calls != 4000 || r[0].Tokens != 4000 || r[0].Dollars != 8000 || r[0].Tools["tool"] != 4000 {
		t.Errorf("got %+v", r)
	}
	var none *runs.Table
	none.Begin("r")
	none.End("r", "", "")
	none.Add("r", 1, 1, true)
	if r, dropped := none.Latest(1); r != nil || dropped != 0 {
		t.Errorf("a nil table has %+v", r)
	}
}
