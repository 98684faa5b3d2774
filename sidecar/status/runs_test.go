package status

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Runs of several processes are merged by name. The limits are those of the process with the later call.
func TestMergedRunsAddCallsOfOneName(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	limits := func(name string) []OfUpstream { return []OfUpstream{{Name: name}} }
	all := Runs{Dropped: 1, Runs: []Run{
		{Name: "a", First: at, Last: at.Add(time.Minute), Calls: 1, Tokens: 10, USD: 0.5, Tools: map[string]int64{"x": 1}, Refused: 1, RefusedBy: map[string]int64{"l": 1}, Upstreams: limits("old")},
	}}
	all.Merge(Runs{Dropped: 2, Runs: []Run{
		{Name: "b", First: at, Last: at.Add(time.Hour), Calls: 7},
		{Name: "a", First: at.Add(-time.Minute), Last: at.Add(2 * time.Minute), Calls: 2, Tokens: 5, USD: 0.25, Unpriced: 1, Tools: map[string]int64{"x": 1, "y": 1}, Refused: 2, RefusedBy: map[string]int64{"m": 2}, Upstreams: limits("new")},
	}})
	want := Runs{Dropped: 3, Runs: []Run{
		{Name: "b", First: at, Last: at.Add(time.Hour), Calls: 7},
		{Name: "a", First: at.Add(-time.Minute), Last: at.Add(2 * time.Minute), Calls: 3, Tokens: 15, USD: 0.75, Unpriced: 1, Tools: map[string]int64{"x": 2, "y": 1}, Refused: 3, RefusedBy: map[string]int64{"l": 1, "m": 2}, Upstreams: limits("new")},
	}}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("got %+v, want %+v", all, want)
	}
}

// A list of several runs shows the three most called tools of each. A single run is shown with all of them.
func TestPrintedRunsListMostCalledTools(t *testing.T) {
	r := Run{Name: "a", Last: time.Now(), Calls: 10, Tools: map[string]int64{"w": 1, "x": 2, "y": 3, "z": 4}, Refused: 1, RefusedBy: map[string]int64{"l": 1}}
	for _, c := range []struct {
		all  Runs
		want string
	}{
		{Runs{Runs: []Run{r, {Name: "b"}}, Dropped: 7}, "z 4, y 3, x 2, 1 more"},
		{Runs{Runs: []Run{r}}, "z 4, y 3, x 2, w 1"},
	} {
		var text strings.Builder
		if err := c.all.Print(&text); err != nil || !strings.Contains(text.String(), c.want+" ") || strings.Contains(text.String(), "7 earlier runs were dropped") != (c.all.Dropped > 0) {
			t.Errorf("got %s, want %s", &text, c.want)
		}
	}
}
