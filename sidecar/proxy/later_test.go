package proxy

import (
	"encoding/base64"
	"testing"
	"time"
)

// A token that expires after the year 9999 counts as unlimited, like a token without an expiry.
func TestEndsOfTokens(t *testing.T) {
	for exp, want := range map[string]time.Time{
		"1795830000":        time.Unix(1795830000, 0),
		"253402300799":      time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		"253402300800":      {},
		"900000000000":      {},
		"1e300":             {},
		"-1":                {},
		`"tomorrow"`:        {},
		"253402300799.9999": time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		at, ok := expiry("e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":`+exp+`}`)) + ".x")
		if !at.Equal(want) || ok != !want.IsZero() {
			t.Errorf("%s ends at %v, %v; want %v", exp, at, ok, want)
		}
	}
}
