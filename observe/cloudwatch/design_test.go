package weircw

import (
	"strings"
	"testing"
	"testing/synctest"
)

// The design for DRS has exactly one set for each of its metrics.
func TestDesignOfDRSPublishesItsDimensionsExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			config Config
			want   map[string]float64
		}{
			{Config{Design: DRS}, map[string]float64{
				"RateLimitErrors ErrorType=SlowDown Region=eu-west-1 Operation=put":            2,
				"RetryAttempts Region=eu-west-1 Operation=put Attempt=2 Success=false":         1,
				"RetryExhausted Region=eu-west-1 Operation=put":                                1,
				"APICallCount Region=eu-west-1 Operation=put Success=true":                     2,
				"APICallCount Region=eu-west-1 Operation=put Success=false ErrorCode=SlowDown": 2,
			}},
			{Config{Design: DRS, Static: map[string]string{"Service": "x"}, Names: map[Dimension]string{Region: "Where"}}, map[string]float64{
				"RateLimitErrors Service=x ErrorType=SlowDown Where=eu-west-1 Operation=put":            2,
				"RetryAttempts Service=x Where=eu-west-1 Operation=put Attempt=2 Success=false":         1,
				"RetryExhausted Service=x Where=eu-west-1 Operation=put":                                1,
				"APICallCount Service=x Where=eu-west-1 Operation=put Success=true":                     2,
				"APICallCount Service=x Where=eu-west-1 Operation=put Success=false ErrorCode=SlowDown": 2,
			}},
		} {
			var p page
			c.config.Lines = &p
			m := start(t, c.config)
			everything(t, m)
			if err := m.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := p.sums(t)
			for series := range got {
				switch name, _, _ := strings.Cut(series, " "); Metric(name) {
				case RateLimitErrors, RetryAttempts, RetryExhausted, APICallCount:
				default:
					delete(got, series)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("%d series, want %d: %v", len(got), len(c.want), got)
			}
			want(t, got, c.want)
		}
	})
	if err := (Config{Design: "dsr"}).Validate(); err == nil || !strings.Contains(err.Error(), `no design "dsr"`) {
		t.Error(err)
	}
}
