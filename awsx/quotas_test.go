package awsx

import (
	"strings"
	"testing"
)

// A quota without a source cannot be checked when AWS changes it.
func TestEveryQuotaHasASource(t *testing.T) {
	for service, all := range quotas {
		for _, q := range all {
			if !strings.HasPrefix(q.source, "https://docs.aws.amazon.com/") && service != "drs" || q.source == "" || q.burst < 1 || q.amount < 1 {
				t.Errorf("%s: %+v", service, q)
			}
		}
	}
}
