package httpx_test

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

func TestConditionalWriteIsNotRepeated(t *testing.T) {
	slow := func() *http.Response {
		r := response(503, body("<Error><Code>SlowDown</Code></Error>"))
		r.Header.Set("Content-Type", "application/xml")
		return r
	}
	status := func(code int) func() *http.Response { return func() *http.Response { return response(code, body("")) } }
	failures := []struct {
		name    string
		resp    func() *http.Response
		err     error
		repeats bool
	}{
		{"cut", nil, io.ErrUnexpectedEOF, false},
		{"reset", nil, syscall.ECONNRESET, false},
		{"timeout", nil, weir.ErrAttemptTimeout, false},
		{"500", status(500), nil, false},
		{"502", status(502), nil, false},
		{"504", status(504), nil, false},
		{"429", status(429), nil, true},
		{"SlowDown", slow, nil, true},
		{"refused", nil, syscall.ECONNREFUSED, true},
	}
	for _, c := range []struct {
		method, header, query string // the header may have a value, or be a path
		conditional           bool
	}{
		{"PUT", "If-Match", "", true}, {"PUT", "If-None-Match", "", true}, {"DELETE", "If-Match", "", true},
		{"PUT", "If-Unmodified-Since", "", true}, {"PATCH", "If-Match", "", true}, {"POST", "If-None-Match", "", true},
		{"PUT", "X-Amz-Copy-Source-If-Match", "", true}, {"PUT", "X-Amz-Copy-Source-If-Unmodified-Since", "", true},
		{"PUT", "X-Goog-If-Generation-Match", "", true}, {"DELETE", "X-Goog-If-Metageneration-Match", "", true},
		{"DELETE", "X-Amz-If-Match-Size", "", true}, {"PUT", "X-Ms-Source-If-Match", "", true}, {"PUT", "X-Ms-Blob-Condition-Maxsize", "", true},
		{"PUT", "If", "", true}, {"PUT", "If-Schedule-Tag-Match", "", true}, {"PUT", "X-Amz-Write-Offset-Bytes", "", true},
		{"PUT", "", "a=b&ifGenerationMatch=0", true}, {"PUT", "", "ifMetagenerationNotMatch=3", true},
		{"PUT", "", "if_seq_no=3&if_primary_term=1", true}, {"PUT", "", "if%47enerationMatch=0", true}, {"PUT", "", "ifMatch=x", true},
		{"PUT", "", "cas=4", true}, {"DELETE", "", "rev=3-a", true}, {"PUT", "", "prevExist=false", true}, {"PUT", "", "op_type=create", true},
		{"PUT", "", "version=4&version_type=external", true}, {"PUT", "", "version=4&version_type=external_gte", false}, {"PUT", "", "op_type=index", false},
		{"PUT", "", "iframe=1", false}, {"PUT", "", "rate=if", false},
		{"PUT", "If_match", "", true}, {"PUT", "X-Oss-Forbid-Overwrite: true", "", true}, {"PUT", "X-Cos-Forbid-Overwrite: false", "", false}, {"MOVE", "Overwrite: F", "", true}, {"PUT", "Overwrite: T", "", false},
		{"PUT", "Upload-Offset: 3", "", true}, {"PUT", "X-Expected-Version", "", true}, {"DELETE", "Es-Expectedversion: 3", "", true}, {"PUT", "X-Amz-Expected-Bucket-Owner", "", false},
		{"PUT", "", "overwrite=false", true}, {"PUT", "", "overwrite=true", false}, {"PUT", "", "expected_version=3", true}, {"PUT", "", "expectedRevision=3", true}, {"PUT", "", "expected=3", false},
		{"PUT", "/index/_create/1", "", true}, {"PUT", "/index/_doc/1", "", false},
		{"GET", "If-None-Match", "", false}, {"HEAD", "If-Modified-Since", "", false},
		{"PUT", "X-Different", "", false}, {"PUT", "", "notify=if", false},
	} {
		for _, f := range failures {
			for _, operation := range []weir.Safety{weir.ByMethod, weir.Yes} {
				synctest.Test(t, func(t *testing.T) {
					p, n := steady(), 0
					p.Operations = []weir.Operation{{Name: "all", Path: "/", Safe: operation}}
					tr := httpx.NewTransport(open(t, p, weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
						if n++; f.resp == nil {
							return nil, f.err
						}
						return f.resp(), nil
					}))
					path := "/a"
					if strings.HasPrefix(c.header, "/") {
						path = c.header
					}
					r, err := http.NewRequest(c.method, "http://api.example"+path+"?"+c.query, strings.NewReader(""))
					if err != nil {
						t.Fatal(err)
					}
					if name, value, given := strings.Cut(c.header, ": "); name != "" && path != name {
						if r.Header[name] = []string{"x"}; given {
							r.Header[name] = []string{value}
						}
					}
					resp, err := tr.RoundTrip(r)
					if err == nil {
						_ = resp.Body.Close()
					}
					want := f.repeats || !c.conditional
					if unsafe := c.method == "POST" || c.method == "PATCH" || c.method == "MOVE"; unsafe && operation == weir.ByMethod {
						want = f.repeats
					}
					if n > 1 != want {
						t.Errorf("%s with %s %s, safe %q, after %s: sent %d times, want repeated: %v", c.method, c.header, c.query, operation, f.name, n, want)
					}
				})
			}
		}
	}
	// With an idempotency key, the upstream recognizes a repeated request.
	synctest.Test(t, func(t *testing.T) {
		n := 0
		tr := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
			n++
			return response(500, body("")), nil
		}))
		r := request(t, t.Context(), "PUT", nil)
		r.Header.Set("If-Match", "x")
		r.Header.Set("Idempotency-Key", "k")
		if resp, err := tr.RoundTrip(r); err == nil {
			_ = resp.Body.Close()
		}
		if n < 2 {
			t.Errorf("with an idempotency key: sent %d times, want several", n)
		}
	})
}
