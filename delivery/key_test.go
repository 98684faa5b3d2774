package delivery_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// Fingerprints are the same as in older versions, which may have stored them.
func TestFingerprintsStayWhatTheyWere(t *testing.T) {
	plain := delivery.Request{Upstream: "up", Method: "POST", Path: "/in", Body: []byte("hello")}
	all := delivery.Request{Upstream: "up", Method: "PUT", Path: "/a/b", Query: "x=1&y", OrderKey: "k", Body: []byte(strings.Repeat("long ", 200)),
		Header:    http.Header{"Content-Type": {"text/plain"}, "X-Amz-Target": {"T.Do"}, "User-Agent": {"u"}, "X-B": {"2", "3"}, "X-A": {"1"}},
		NotBefore: time.Date(2026, 5, 1, 12, 0, 0, 5, time.FixedZone("", 3600))}
	large := delivery.Request{Upstream: "up", Method: "POST", Path: "/", Large: delivery.Blob{Name: "b", Size: 3, Sum: [32]byte{1, 2, 3}}}
	for want, r := range map[string]delivery.Request{
		"2ce42c7a012ff667ddb043cc06301c4fb47f0a965dae2d31660d95bba119e27a": plain,
		"dbbcd8e13dea052c4ebaebb7fe097bdabb043dae325abbcc8cff673f9d62887a": all,
		"d1183b95da2114d25e94ab184c2dbe308ffb3ec2b5b63c2a78763540e66f56c7": large,
	} {
		if got := fmt.Sprintf("%x", r.Fingerprint()); got != want {
			t.Errorf("%s %s has %s, had %s", r.Method, r.Path, got, want)
		}
	}
}

func TestStatusesAreListedInWords(t *testing.T) {
	err := (&delivery.Filter{Status: "gone"}).Check()
	if want := `status: "gone" is invalid: want one of created, queued, processing, completed, failed`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A time after the year 9999 has no RFC 3339 form, so no list could show it.
func TestInstantsThatCannotBeShown(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	after := last.Add(time.Nanosecond).In(time.FixedZone("", -3600)) // in this zone it is still 9999
	for name, at := range map[string]func(r *delivery.Request) *time.Time{
		"Weir-Not-Before":     func(r *delivery.Request) *time.Time { return &r.NotBefore },
		"Weir-Deliver-Before": func(r *delivery.Request) *time.Time { return &r.Expires },
		"token_ends":          func(r *delivery.Request) *time.Time { return &r.TokenEnds },
	} {
		r := delivery.Request{Upstream: "up", Method: "POST", Path: "/"}
		*at(&r) = last
		if err := r.CheckForm(); err != nil {
			t.Errorf("%s %v: %v", name, last, err)
		}
		*at(&r) = after
		if err := r.CheckForm(); err == nil || err.Error() != name+": is after the year 9999" {
			t.Errorf("%s %v: %v", name, after, err)
		}
	}
}
