package awsx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
)

// clocked is a service with a wrong clock that refuses signatures with another date.
func clocked(t *testing.T, off time.Duration) (url string, n *atomic.Int64) {
	n = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		now := time.Now().Add(off)
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		at, _ := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if now.Sub(at).Abs() > 15*time.Minute {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"__type":"InvalidSignatureException","message":"Signature not yet current"}`)
			return
		}
		_, _ = io.WriteString(w, `{"TableNames":[]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, n
}

// The SDK still corrects a wrong clock under the guard. This costs one attempt per client, and is not counted as a failure of the
// service.
func TestAWrongClockIsCorrected(t *testing.T) {
	for _, off := range []time.Duration{20 * time.Minute, -20 * time.Minute} {
		url, n := clocked(t, off)
		cfg := config(url)
		var failed atomic.Int64
		awsx.New(awsx.Options{Policy: plainPolicy, Upstream: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) {
			if e.Outcome.Retryable() {
				failed.Add(1)
			}
		}}}}).Attach(&cfg)
		c := dynamodb.NewFromConfig(cfg)
		for range 3 {
			if _, err := c.ListTables(t.Context(), nil); err != nil {
				t.Errorf("%v off: %v", off, err)
			}
		}
		if n.Load() != 4 || failed.Load() != 0 {
			t.Errorf("%v off: %d sent, want 4; %d failures of the service", off, n.Load(), failed.Load())
		}
	}
}

func TestErrorsNameTheirCause(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		off              time.Duration
	}{
		{"behind", `{"__type":"InvalidSignatureException"}`, "the clock of this machine is 20m0s behind the service's", 20 * time.Minute},
		{"ahead", `{"__type":"SignatureDoesNotMatch"}`, "the clock of this machine is 20m0s ahead of the service's", -20 * time.Minute},
		{"secret", `{"__type":"InvalidSignatureException"}`, "the secret key does not belong", 0},
		{"expired", `{"__type":"ExpiredTokenException"}`, "the credentials have expired", 0},
		{"key", `{"__type":"UnrecognizedClientException"}`, "does not know this access key", 0},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(c.off).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, c.body)
		}))
		cfg := config(s.URL)
		awsx.New(awsx.Options{Policy: plainPolicy}).Attach(&cfg)
		_, err := dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil)
		// A second may begin between the two clocks' readings.
		if msg := fmt.Sprint(err); !strings.Contains(msg, c.want) && !strings.Contains(strings.Replace(msg, "20m1s", "20m0s", 1), c.want) && !strings.Contains(strings.Replace(msg, "19m59s", "20m0s", 1), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret\"") || strings.Contains(fmt.Sprint(err), "AKID") {
			t.Errorf("%s tells secrets: %v", c.name, err)
		}
		s.Close()
	}
}

func TestARegionThatDoesNotExist(t *testing.T) {
	cfg := config("")
	cfg.BaseEndpoint, cfg.Region = nil, "mars-1"
	cfg.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}}}
	awsx.New(awsx.Options{Policy: plainPolicy}).Attach(&cfg)
	_, err := dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), `does dynamodb exist in region "mars-1"?`) {
		t.Error(err)
	}
	cfg.Region = ""
	if _, err = dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "egion") {
		t.Errorf("no region at all: %v", err)
	}
}

// A bucket in another region is the caller's mistake, and the request is not repeated.
func TestABucketInAnotherRegion(t *testing.T) {
	url, n := answering(t, 301, http.Header{"Content-Type": {"application/xml"}}, `<Error><Code>PermanentRedirect</Code><Message>m</Message></Error>`)
	cfg := config(url)
	var ended []weir.Ended
	awsx.New(awsx.Options{Policy: plainPolicy, Upstream: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { ended = append(ended, e) }}}}).Attach(&cfg)
	_, err := s3.NewFromConfig(cfg, pathStyle).HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("b")})
	if err == nil || n.Load() != 1 || len(ended) != 1 || ended[0].Outcome.Class.String() != "rejected" {
		t.Errorf("%d sent, %+v: %v", n.Load(), ended, err)
	}
}

func pathStyle(o *s3.Options) { o.UsePathStyle = true }

// A response that is truncated, invalid, or contains an error is not a success.
func TestAGoodStatusIsNotEnough(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"error inside": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `<Error><Code>InternalError</Code><Message>m</Message></Error>`)
		},
		"throttle inside": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `<Error><Code>SlowDown</Code><Message>m</Message></Error>`)
		},
		"cut off": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `<CopyObjectResult><ETag>x`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"garbage": func(w http.ResponseWriter) { _, _ = io.WriteString(w, `<a><b></a>`) },
	} {
		var n atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			answer(w)
		}))
		cfg := config(s.URL)
		awsx.New(awsx.Options{Policy: plainPolicy}).Attach(&cfg)
		in := &s3.CopyObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), CopySource: aws.String("b/x")}
		if _, err := s3.NewFromConfig(cfg, pathStyle).CopyObject(t.Context(), in); err == nil || n.Load() != 3 {
			t.Errorf("%s: %d sent: %v", name, n.Load(), err)
		}
		s.Close()
	}
}

// A body that cannot be read again is sent once. The error has the failure and the reason why it was not repeated.
func TestAStreamIsSentOnce(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(503)
	}))
	defer s.Close()
	cfg := config(s.URL)
	cfg.HTTPClient = s.Client()
	var ended atomic.Int64
	awsx.New(awsx.Options{Policy: plainPolicy, Upstream: weir.Options{Events: weir.Events{Ended: func(weir.Ended) { ended.Add(1) }}}}).Attach(&cfg)
	_, err := s3.NewFromConfig(cfg, pathStyle).PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String("b"), Key: aws.String("k"), Body: io.LimitReader(strings.NewReader("hello"), 5), ContentLength: aws.Int64(5),
	})
	if !errors.Is(err, awsx.ErrNotSeekable) || !strings.Contains(err.Error(), "StatusCode: 503") || n.Load() != 1 || ended.Load() != 1 {
		t.Errorf("%d sent, %d attempts: %v", n.Load(), ended.Load(), err)
	}
}
