package notify

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
)

// An alert about DRS has the error text, a severity and steps for DRS. Alerts about other upstreams do not.
func TestEscalationOfDRSNamesErrorAndActions(t *testing.T) {
	actions := []string{"Check DRS quotas", "Review concurrent jobs in the region", "Spread operations over regions", "Request higher limits"}
	for _, c := range []struct {
		upstream, key string
		service       func(string) string
		err           bool
		drs           bool
	}{
		{"aws/drs/eu-west-1/123456789012", "account=123456789012,region=eu-west-1", nil, true, true},
		{"recovery", "region=eu-west-1", func(string) string { return "drs" }, true, true},
		{"aws/s3/eu-west-1/123456789012", "region=eu-west-1", nil, true, false},
		{"model", "tenant=acme", nil, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &box{}
			n := start(t, Config{Targets: []Target{b}, Kinds: []Kind{Exhausted, Retry}, Service: c.service, Interval: time.Hour})
			s := weir.Subject{Upstream: c.upstream, Operation: "StartRecovery", Key: c.key}
			err := errors.New("ThrottlingException: Rate exceeded (https://h/?X-Amz-Signature=0123456789abcdef)")
			failed := exhausted(s)
			failed.Err = err
			n.Events().Retried(weir.Retried{Subject: s, Attempt: 1, Outcome: failed.Outcome, Err: err})
			n.Events().GaveUp(failed)
			synctest.Wait()
			all := b.messages()
			if len(all) != 2 || all[0].Kind != Retry || all[0].Severity != Warning || all[1].Severity != Critical {
				t.Fatalf("%+v", all)
			}
			for _, m := range all {
				text := m.Text()
				if strings.Contains(text, "Rate exceeded") != c.err || strings.Contains(text, "0123456789abcdef") || !strings.Contains(text, "Severity: "+string(m.Severity)) {
					t.Errorf("%s", text)
				}
				for _, a := range actions {
					if strings.Contains(text, a) != c.drs {
						t.Errorf("%q: %v in\n%s", a, !c.drs, text)
					}
				}
				data, err := json.Marshal(m)
				if err != nil || !strings.Contains(string(data), `"severity":"`+string(m.Severity)+`"`) {
					t.Errorf("%s, %v", data, err)
				}
			}
		})
	}
}

// Retries are reported only on request.
func TestRetriesAreReportedOnlyIfChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{}
		n := start(t, Config{Targets: []Target{b}})
		n.Events().Retried(weir.Retried{Subject: weir.Subject{Upstream: "s3"}, Attempt: 1})
		synctest.Wait()
		if all := b.messages(); len(all) != 0 {
			t.Errorf("%+v", all)
		}
	})
}
