//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

// cloud is S3, DynamoDB and DRS at one address. Each request must be signed with weir's key.
func cloud(t *testing.T) (address string, recoveries *drstest.Server) {
	table, err := url.Parse(servers.Dynalite(t).Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	lost := false
	recoveries = &drstest.Server{}
	recoveries.Fault = func(operation string) drstest.Fault {
		if operation == "StartRecovery" && recoveries.Recoveries() == 1 && !lost {
			lost = true
			return drstest.LostAfter
		}
		return drstest.None
	}
	services := map[string]http.Handler{
		"s3": gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog()), gofakes3.WithTimeSkewLimit(0)).Server(), "drs": recoveries,
		"dynamodb": httputil.NewSingleHostReverseProxy(table),
	}
	v := &sigtest.Verifier{Secrets: map[string]string{"AKWEIR": "of weir"}}
	var mu sync.Mutex
	var bad []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed, err := v.Verify(r)
		if err != nil || signed.Token != "" {
			mu.Lock()
			bad = append(bad, fmt.Sprintf("%s %s: token %q, %v", r.Method, r.RequestURI, signed.Token, err))
			mu.Unlock()
			w.WriteHeader(http.StatusForbidden)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(signed.Body)), int64(len(signed.Body))
		if signed.Service == "s3" { // this store does not know S3
			for _, name := range []string{"Content-Encoding", "X-Amz-Content-Sha256", "X-Amz-Decoded-Content-Length", "X-Amz-Trailer"} {
				r.Header.Del(name)
			}
			r.Header.Set("Content-Length", strconv.Itoa(len(signed.Body)))
		}
		services[signed.Service].ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		for _, b := range bad {
			t.Error(b)
		}
	})
	return s.URL, recoveries
}

func setKeys(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKWEIR", "AWS_SECRET_ACCESS_KEY": "of weir", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
}

// Programs in any language acquire a place before they start a job. Two processes with a shared store never grant more places
// than exist.
func TestJobsOverHTTP(t *testing.T) {
	setKeys(t)
	far := &drstest.Server{Verify: &sigtest.Verifier{Secrets: map[string]string{"AKWEIR": "of weir"}}}
	s := httptest.NewServer(far)
	defer s.Close()
	redis := servers.Redis(t)
	var weirs []*process
	for range 2 {
		weirs = append(weirs, start(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: off
store: {redis: %q}
decide: {listen: 127.0.0.1:0}
upstreams:
  drs: {url: %q, aws: {service: drs, region: eu-west-1}, jobs: {threshold: 3, max: 5}}
`, redis.URL(), s.URL)))
	}
	var got, full int
	for i := range 6 {
		resp, err := http.Post("http://"+weirs[i%2].Serve.Decide+"/v1/jobs/drs", "application/json", strings.NewReader(`{"waitMs":0}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusCreated && strings.Contains(string(text), `"slot":"`) && !strings.Contains(string(text), "unasked"):
			got++
		case resp.StatusCode == http.StatusTooManyRequests && strings.Contains(string(text), "JOB_CAPACITY_TIMEOUT") && strings.Contains(string(text), `"currentJobs":3`):
			full++
		default:
			t.Errorf("%s: %s", resp.Status, text)
		}
	}
	if got != 3 || full != 3 || far.Requests("DescribeJobs") < 6 {
		t.Errorf("%d places and %d refusals, want 3 and 3", got, full)
	}
}

// The unmodified AWS SDK for JavaScript, with credentials that weir does not know.
func TestTheJavaScriptSDKThroughWeir(t *testing.T) {
	setKeys(t)
	far, recoveries := cloud(t)
	w := start(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: off
upstreams:
  s3: {url: %[1]q, aws: {service: s3, region: eu-west-1}}
  dynamodb: {url: %[1]q, aws: {}}
  drs: {url: %[1]q, aws: {}}
`, far))
	modules, err := filepath.Abs("../../../.deps/npm/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "testdata/aws.cjs", "http://"+w.Serve.Listen)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), ": good") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	if n := recoveries.Recoveries(); n != 2 {
		t.Errorf("%d recoveries were started, want 2", n)
	}
}
