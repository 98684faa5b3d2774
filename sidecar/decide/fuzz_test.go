package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// FuzzDecode checks that any body yields a request within its bounds, or an error on one line.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `null`, `[[]]`, `{"upstream":"api"}`, `{"upstream":"api","upstream":"b"}`, "{\"upstream\":\"\xff\"}",
		`{"upstream":"api","operation":"put","keys":{"tenant":"acme"},"cost":{"tokens":10},"wait":"2s","priority":"high","safe":true,"id":"x1","expires":"30s"}`,
		`{"permit":"x","outcome":"ok","status":200,"headers":{"retry-after":"1"},"code":"SlowDown","retry_after":"1.5s","usage":{"tokens":7},"unsent":false,"again":false}`,
		`{"upstream":"\ud800","cost":{"a":-0}}`, `{"upstream":"a","cost":{"a":1e400}}`, `{"permit":"x","status":429,"headers":{"":""}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var a *acquireRequest
		o, fail := parse(body)
		if fail == nil {
			a, fail = decodeAcquire(o, "", 30*time.Second)
		}
		tellable(t, body, fail)
		if fail == nil {
			if a.Upstream == "" || a.Wait < 0 || a.Wait > 30*time.Second || a.Life < shortestLife || a.Life > longestLife || size(a.Keys) > longestKeys || len(a.Cost) > mostUnits {
				t.Errorf("%q: taken as %+v", body, a)
			}
			for unit, n := range a.Cost {
				if n < 0 || n > mostCost || unit == "" {
					t.Errorf("%q: cost %q %d", body, unit, n)
				}
			}
			_ = a.print()
		}
		var r *reportRequest
		if o, fail = parse(body); fail == nil { // again, because each field can be taken once
			r, fail = decodeReport(o)
		}
		tellable(t, body, fail)
		if fail == nil {
			o := r.outcome(policy().Classify, time.Unix(0, 0))
			if r.Permit == "" || o.Hint.After < 0 || o.Unsent != r.Unsent {
				t.Errorf("%q: taken as %+v, %+v", body, r, o)
			}
		}
	})
}

func tellable(t *testing.T, body []byte, f *refuse.Facts) {
	if f == nil {
		return
	}
	if f.Code != refuse.ValidationError || f.Message == "" || len(f.Message) > 4000 || strings.ContainsFunc(f.Message, func(r rune) bool { return r < ' ' }) {
		t.Errorf("%q: %s %q", body, f.Code, f.Message)
	}
}
