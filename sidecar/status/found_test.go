package status

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/limit"
)

func TestTheStatusSaysWhatWasFoundOfTheStore(t *testing.T) {
	for want, f := range map[string]Found{
		"has not been reached since the start, after 3 attempts: NOAUTH":   {Looks: 3, Error: "NOAUTH"},
		"did not answer the last check: away":                              {Reached: true, Looks: 1, Error: "away"},
		"up: the store is cold: it has no record of the usage":             {Reached: true, Cold: []Cold{{Upstream: "up", Limit: "day", LastsMS: 60_000}}},
		"each process uses at most its share, day for at most 1m0s more":   {Reached: true, Cold: []Cold{{Upstream: "up", Limit: "day", LastsMS: 60_000, Mode: limit.ColdShare}}},
		"they started full, day for at most 1m0s more":                     {Reached: true, Cold: []Cold{{Upstream: "up", Limit: "day", LastsMS: 60_000, Mode: limit.ColdFull}}},
		"day for at most 1m0s more; if they were not used, run weir store": {Reached: true, Cold: []Cold{{Upstream: "up", Limit: "day", LastsMS: 60_000}}},
	} {
		var b bytes.Buffer
		if (&Fleet{Found: &f}).print(&b); !strings.Contains(b.String(), want) {
			t.Errorf("it says %q, want %q", b.String(), want)
		}
	}
	var b bytes.Buffer
	if (&Fleet{Found: &Found{Reached: true, Looks: 1}}).print(&b); strings.Count(b.String(), "\n") != 1 {
		t.Errorf("of a store that answers it says %q", b.String())
	}
}
