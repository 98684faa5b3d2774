package status

import (
	"strings"
	"testing"
)

func TestStatusPrintsStoreClockThatIsNotKnownWell(t *testing.T) {
	for _, c := range []struct {
		clock *Clock
		want  string
	}{
		{nil, ""},
		{&Clock{Known: true, AheadMS: 660, UncertaintyMS: 30}, ""},
		{&Clock{}, "the store's clock is not known yet"},
		{&Clock{Known: true, Rough: true, UncertaintyMS: 600}, "the store's clock is known only within 600ms"},
	} {
		var out strings.Builder
		(&Found{Reached: true, Clock: c.clock}).print(&out)
		if got := out.String(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.clock, got, c.want)
		}
	}
}
