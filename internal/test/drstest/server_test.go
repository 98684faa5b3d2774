package drstest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

const signature = "AWS4-HMAC-SHA256 Credential=%s/20261121/%s/drs/aws4_request, SignedHeaders=host;x-amz-date, Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// ask sends a request with a key in a region.
func ask(s *drstest.Server, key, region, operation, in string) (status int, header http.Header, out map[string]any) {
	r := httptest.NewRequest(http.MethodPost, "/"+operation, bytes.NewBufferString(in))
	r.Header.Set("Authorization", fmt.Sprintf(signature, key, region))
	r.Header.Set("X-Amz-Date", "20261121T000000Z")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	_ = json.Unmarshal(w.Body.Bytes(), &out)
	return w.Code, w.Header(), out
}

// at sets a server's clock, which moves only when the test changes it.
func at(s *drstest.Server) (now *time.Time) {
	now = new(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	s.Now = func() time.Time { return *now }
	return now
}

func TestAnAccountAndRegionHasARate(t *testing.T) {
	s := drstest.AWS()
	s.Accounts = map[string]string{"A": "1", "B": "1"}
	now := at(s)
	good := func(key, region string) (n int) {
		for status := 200; ; n++ {
			var h http.Header
			if status, h, _ = ask(s, key, region, "DescribeJobs", "{}"); status != 200 {
				if status != 429 || !strings.HasPrefix(h.Get("X-Amzn-Errortype"), "ThrottlingException:") || h.Get("Retry-After") != "1" {
					t.Fatalf("%d %v", status, h)
				}
				return n
			}
		}
	}
	if a, b, c, d := good("A", "r-1"), good("B", "r-1"), good("A", "r-2"), good("C", "r-1"); a != 20 || b != 0 || c != 20 || d != 20 {
		t.Errorf("%d, %d of the same account, %d in another region, %d of another account", a, b, c, d)
	}
	*now = now.Add(500 * time.Millisecond)
	if n := good("B", "r-1"); n != 5 || s.Throttled() != 5 {
		t.Errorf("%d half a second later; %d throttled", n, s.Throttled())
	}
}

func TestAJobLivesAndOnlySoManyDo(t *testing.T) {
	s := drstest.AWS()
	s.Rate = 0
	now := at(s)
	start := func() (int, map[string]any) {
		status, _, out := ask(s, "A", "r-1", "StartRecovery", `{"sourceServers":[{"sourceServerID":"s-1"}],"isDrill":true,"tags":{"k":"v"}}`)
		job, _ := out["job"].(map[string]any)
		return status, job
	}
	status, job := start()
	if status != 202 || job["status"] != "PENDING" || job["initiatedBy"] != "START_DRILL" || job["type"] != "LAUNCH" || job["tags"].(map[string]any)["k"] != "v" {
		t.Fatalf("%d %v", status, job)
	}
	for range 19 {
		start()
	}
	if status, h, _ := ask(s, "A", "r-1", "StartRecovery", `{"sourceServers":[{}]}`); status != 402 || !strings.Contains(h.Get("X-Amzn-Errortype"), "ServiceQuotaExceeded") || s.Recoveries() != 20 {
		t.Errorf("%d, %d recoveries", status, s.Recoveries())
	}
	states := ""
	for range 3 {
		_, _, out := ask(s, "A", "r-1", "DescribeJobs", fmt.Sprintf(`{"filters":{"jobIDs":[%q]}}`, job["jobID"]))
		states += out["items"].([]any)[0].(map[string]any)["status"].(string) + " "
		*now = now.Add(7*time.Minute + 30*time.Second)
	}
	if states != "PENDING STARTED COMPLETED " {
		t.Error(states)
	}
	if status, _ := start(); status != 202 {
		t.Errorf("%d when all have ended", status)
	}
}

// New jobs do not hide or repeat jobs while a client reads a list.
func TestAListStandsStill(t *testing.T) {
	s := &drstest.Server{PageSize: 3}
	start := func() { ask(s, "A", "r-1", "StartRecovery", `{"sourceServers":[{"sourceServerID":"s-1"}]}`) }
	for range 10 {
		start()
	}
	seen, token := map[any]int{}, `{}`
	for pages := 1; ; pages++ {
		_, _, out := ask(s, "A", "r-1", "DescribeJobs", token)
		for _, j := range out["items"].([]any) {
			seen[j.(map[string]any)["jobID"]]++
		}
		start()
		if out["nextToken"] == nil {
			if len(seen) != 10 || pages != 4 {
				t.Errorf("%d jobs on %d pages: %v", len(seen), pages, seen)
			}
			return
		}
		token = fmt.Sprintf(`{"nextToken":%q}`, out["nextToken"])
	}
}

func TestBadRequests(t *testing.T) {
	s := &drstest.Server{Expired: func(key string) bool { return key == "OLD" }}
	for _, c := range []struct {
		key, operation, in string
		status             int
		code               string
	}{
		{"A", "StartRecovery", `{}`, 400, "ValidationException"},
		{"A", "StartRecovery", `{`, 400, "SerializationException"},
		{"A", "TerminateRecoveryInstances", `{"recoveryInstanceIDs":["i-1"]}`, 400, "ValidationException"},
		{"A", "TerminateRecoveryInstances", `{}`, 400, "ValidationException"},
		{"A", "DescribeJobs", `{"nextToken":"x"}`, 400, "ValidationException"},
		{"A", "DescribeSourceServers", `{"nextToken":"9"}`, 400, "ValidationException"},
		{"A", "Nothing", `{}`, 404, "UnknownOperationException"},
		{"OLD", "DescribeJobs", `{}`, 403, "ExpiredTokenException"},
		{"no/such", "DescribeJobs", `{}`, 403, "IncompleteSignatureException"},
	} {
		status, h, out := ask(s, c.key, "r-1", c.operation, c.in)
		if code, _, _ := strings.Cut(h.Get("X-Amzn-Errortype"), ":"); status != c.status || code != c.code || out["message"] == "" {
			t.Errorf("%s %s: %d %s, want %d %s", c.operation, c.in, status, code, c.status, c.code)
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/DescribeJobs", nil))
	if w.Code != 403 || !strings.Contains(w.Header().Get("X-Amzn-Errortype"), "MissingAuthenticationToken") {
		t.Errorf("unsigned: %d %v", w.Code, w.Header())
	}
	s = &drstest.Server{Verify: &sigtest.Verifier{Secrets: map[string]string{"A": "secret"}}}
	for key, want := range map[string]string{"A": "InvalidSignatureException", "B": "UnrecognizedClientException"} {
		if status, h, _ := ask(s, key, "r-1", "DescribeJobs", `{}`); status != 403 || !strings.HasPrefix(h.Get("X-Amzn-Errortype"), want) {
			t.Errorf("signed by nobody as %s: %d %v", key, status, h)
		}
	}
}
