package retry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/retry"
)

var jitters = []retry.Jitter{
	retry.FullJitter, retry.NoJitter, retry.EqualJitter,
	retry.DecorrelatedJitter, retry.RangeJitter, retry.AddedJitter,
}

func TestJitterNamesGoThereAndBack(t *testing.T) {
	for _, want := range jitters {
		text, err := json.Marshal(want)
		if err != nil || string(text) != `"`+want.String()+`"` {
			t.Errorf("%v is written as %s, %v", want, text, err)
		}
		got := retry.Jitter(99)
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Errorf("%s is read as %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestWrongJitterNamesSayWhatIsRight(t *testing.T) {
	for _, name := range []string{"", "Full", "exponential", "full "} {
		j := retry.EqualJitter
		err := j.UnmarshalText([]byte(name))
		if err == nil || j != retry.EqualJitter {
			t.Errorf("%q was read as %v", name, j)
			continue
		}
		for _, want := range jitters {
			if !strings.Contains(err.Error(), want.String()) {
				t.Errorf("%q: %v does not name %v", name, err, want)
			}
		}
	}
	if _, err := retry.Jitter(6).MarshalText(); err == nil {
		t.Error("a jitter without a name was written")
	}
	if got := retry.Jitter(6).String(); got != "jitter(6)" {
		t.Errorf("it prints as %q", got)
	}
}
