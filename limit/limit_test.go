package limit

import (
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func TestValidateNamesEveryField(t *testing.T) {
	second := bucket.Rate{Amount: 1, Per: time.Second}
	for want, l := range map[string]Limit{
		"name":              {Rate: second},
		"amount 0":          {Name: "put", Rate: bucket.Rate{Per: time.Second}},
		"burst 5":           {Name: "put", Shape: Rolling, Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 5}},
		"use shape bucket":  {Name: "put", Shape: Rolling, Rate: bucket.Rate{Amount: mostRolling + 1, Per: time.Hour}},
		"looks back":        {Name: "put", Shape: Rolling, Rate: bucket.Rate{Amount: 1 << 30, Per: longestRolling + 1}},
		"shape 9":           {Name: "put", Shape: 9, Rate: second},
		"max keys -1":       {Name: "put", MaxKeys: -1, Rate: second},
		"no rate to learn":  {Name: "put", Shape: Rolling, Rate: second, Adaptive: adaptive.Config{On: true}},
		"adaptive: cut 1.5": {Name: "put", Rate: second, Adaptive: adaptive.Config{On: true, Cut: 1.5}},
	} {
		err := l.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want a word about %q", l, err, want)
		}
		if m, made := New(0, l); made == nil || m != nil {
			t.Errorf("%+v: made a limiter", l)
		}
		if r, made := NewRegistry(0, l); made == nil || r != nil {
			t.Errorf("%+v: made a registry", l)
		}
	}
}

func TestShapesStandInFilesByName(t *testing.T) {
	for _, s := range []Shape{Bucket, Rolling} {
		text, _ := s.MarshalText()
		var got Shape
		if err := got.UnmarshalText([]byte(strings.ToUpper(string(text)))); err != nil || got != s {
			t.Errorf("%v is read back as %v, %v", s, got, err)
		}
	}
	var s Shape
	if err := s.UnmarshalText([]byte("leaky")); err == nil {
		t.Error("leaky was read")
	}
}

func TestALimitCountsItsOperations(t *testing.T) {
	if l := (Limit{}); !l.Counts("put") || l.UnitName() != Requests {
		t.Errorf("a limit that names nothing counts not all, or %s", l.UnitName())
	}
	if l := (Limit{Operations: []string{"get", "put"}, Unit: "bytes"}); !l.Counts("put") || l.Counts("list") || l.UnitName() != "bytes" {
		t.Error("a limit of get and put counts not just those")
	}
}

func TestMostIsTheLargestCost(t *testing.T) {
	for l, want := range map[*Limit]int64{
		{Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 3}}:           3,
		{Rate: bucket.Rate{Amount: 10, Per: time.Second}}:                     10,
		{Shape: Rolling, Rate: bucket.Rate{Amount: 90, Per: 3 * time.Second}}: 90,
	} {
		if got := l.Most(); got != want {
			t.Errorf("%v: %d, want %d", l, got, want)
		}
	}
}

func TestLearnedRateIsShownWithThreeDigits(t *testing.T) {
	l := Limit{Rate: bucket.Rate{Amount: 100, Per: time.Second}, Adaptive: adaptive.Config{On: true}}
	for rate, want := range map[float64]string{0.00912: "0.00912", 0.875: "0.875", 1.8: "1.8", 99.96: "100", 2999.6: "3000", 123456: "123000"} {
		if s := l.At(Level{PerSecond: rate}); !strings.HasSuffix(s, ", now "+want+"/s") {
			t.Errorf("%v: got %q, want %s", rate, s, want)
		}
	}
}
