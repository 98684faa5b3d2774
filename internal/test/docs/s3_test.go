//go:build unix

package docs

import (
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/s3test"
)

// boto3 and the AWS CLI call a bucket through weir, which signs the requests and retries throttled ones.
func TestS3IsCalledAsItsPageShows(t *testing.T) {
	s3 := s3test.New(t)
	var calls atomic.Int64
	s3.Fail = func(r *http.Request, w http.ResponseWriter) bool {
		if calls.Add(1)%3 != 1 { // every third call, starting with the first
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
		return true
	}
	r := recipe{
		page:    "call-s3.md",
		replace: map[string]string{"https://s3.eu-central-1.amazonaws.com": s3.URL},
		env:     []string{"AWS_ACCESS_KEY_ID=" + s3test.Key, "AWS_SECRET_ACCESS_KEY=" + s3test.Secret},
		files:   map[string]string{"report.txt": "hello\n"},
	}
	r.try(t)
	want := []string{"reports/copy.txt", "reports/report.txt"}
	if got := s3.Keys(); !slices.Equal(got, want) {
		t.Errorf("the bucket has %q, want %q", got, want)
	}
	if body, _ := s3.Get("reports/copy.txt"); string(body) != "hello\n" {
		t.Errorf("the copy is %q", body)
	}
	if _, refused := s3.Asked(); len(refused) > 0 {
		t.Errorf("requests are refused: %q", refused)
	}
}
