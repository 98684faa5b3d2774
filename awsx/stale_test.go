package awsx_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
)

// rotated are credentials that are others at each read, up to a last.
type rotated struct{ reads, last atomic.Int64 }

func (r *rotated) Retrieve(context.Context) (aws.Credentials, error) {
	n := min(r.reads.Add(1), r.last.Load())
	return aws.Credentials{AccessKeyID: fmt.Sprintf("AKID%d", n), SecretAccessKey: "secret", SessionToken: fmt.Sprintf("token%d", n)}, nil
}

// stale returns a client under a guard whose server answers with an error as long as refuse reports it.
func stale(t *testing.T, provider aws.CredentialsProvider, ahead time.Duration, code, message string, refuse func(*http.Request) bool) (*s3.Client, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		if refuse(r) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
		}
	}))
	t.Cleanup(s.Close)
	cfg := config(s.URL)
	if provider != nil {
		cfg.Credentials = aws.NewCredentialsCache(provider)
	}
	awsx.New(awsx.Options{Account: "a", Policy: func(awsx.Target) weir.Policy { return brisk(weir.Policy{}) }}).Attach(&cfg)
	return s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }), &n
}

func put(ctx context.Context, c *s3.Client) error {
	name := aws.String("x")
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: name, Key: name, Body: strings.NewReader("hello"), IfNoneMatch: aws.String("*")})
	return err
}

// TestExpiredCredentialsAreReadAgainOnce sends conditional writes, which are refused before they have an effect.
func TestExpiredCredentialsAreReadAgainOnce(t *testing.T) {
	for _, code := range []string{"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired"} {
		for _, tt := range []struct {
			valid, last int64 // the first token that is accepted, and the last that there is
			sent, reads int64
			ok          bool
		}{
			{2, 2, 2, 2, true}, {3, 3, 2, 2, false}, {2, 1, 1, 2, false},
		} {
			var provider rotated
			provider.last.Store(tt.last)
			valid := fmt.Sprintf("token%d", tt.valid)
			c, n := stale(t, &provider, 0, code, "expired", func(r *http.Request) bool { return r.Header.Get("X-Amz-Security-Token") != valid })
			if err := put(t.Context(), c); (err == nil) != tt.ok || n.Load() != tt.sent || provider.reads.Load() != tt.reads {
				t.Errorf("%s %+v: sent %d times, read %d times, error %v", code, tt, n.Load(), provider.reads.Load(), err)
			}
		}
	}
}

func TestExpiredCredentialsOfManyCallsAreReadAgainOnce(t *testing.T) {
	var provider rotated
	provider.last.Store(100)
	var first sync.WaitGroup
	first.Add(8)
	c, n := stale(t, &provider, 0, "ExpiredToken", "expired", func(r *http.Request) bool {
		if r.Header.Get("X-Amz-Security-Token") != "token1" {
			return false
		}
		first.Done()
		first.Wait()
		return true
	})
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if err := put(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n.Load() != 16 || provider.reads.Load() != 2 {
		t.Errorf("sent %d times, read %d times", n.Load(), provider.reads.Load())
	}
}

func TestUselessReadsOfCredentialsAreBounded(t *testing.T) {
	var provider rotated
	provider.last.Store(1)
	c, n := stale(t, &provider, 0, "ExpiredToken", "expired", func(*http.Request) bool { return true })
	for range 10 {
		if put(t.Context(), c) == nil {
			t.Error("no error")
		}
	}
	if n.Load() != 10 || provider.reads.Load() != 2 {
		t.Errorf("sent %d times, read %d times", n.Load(), provider.reads.Load())
	}
}

// TestClockIsCorrectedOnce repeats a call only if the clocks are far apart, once.
func TestClockIsCorrectedOnce(t *testing.T) {
	for _, tt := range []struct {
		code, message string
		ahead         time.Duration
		heals         bool
		sent          int64
	}{
		{"RequestTimeTooSkewed", "The difference between the request time and the current time is too large.", time.Hour, true, 2},
		{"RequestTimeTooSkewed", "", -time.Hour, true, 2},
		{"RequestExpired", "Request has expired.", time.Hour, true, 2},
		{"RequestInTheFuture", "", -time.Hour, true, 2},
		{"InvalidSignatureException", "Signature expired: 20261120T120000Z is now earlier than 20261120T125500Z", time.Hour, true, 2},
		{"SignatureDoesNotMatch", "Signature expired", time.Hour, true, 2},
		{"AuthFailure", "AWS was not able to validate the provided access credentials", time.Hour, true, 2},
		{"RequestTimeTooSkewed", "", time.Hour, false, 2},
		{"RequestExpired", "", time.Hour, false, 2},
		{"RequestTimeTooSkewed", "", time.Minute, false, 1},
		{"RequestExpired", "", 0, false, 1},
		{"SignatureDoesNotMatch", "the key is wrong", 0, false, 1},
		{"AccessDenied", "no", time.Hour, false, 1},
	} {
		c, n := stale(t, nil, tt.ahead, tt.code, tt.message, func(r *http.Request) bool {
			signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			return !tt.heals || err != nil || time.Now().Add(tt.ahead).Sub(signed).Abs() > 5*time.Minute
		})
		if err := put(t.Context(), c); (err == nil) != tt.heals || n.Load() != tt.sent {
			t.Errorf("%+v: sent %d times, error %v", tt, n.Load(), err)
		}
	}
}

// TestConditionalWriteIsRepeatedAfterAThrottleOnly plays failures of a conditional PUT and a conditional copy.
func TestConditionalWriteIsRepeatedAfterAThrottleOnly(t *testing.T) {
	var n atomic.Int64
	var fail func(http.ResponseWriter)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			fail(w)
		}
	}))
	t.Cleanup(s.Close)
	status := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	name := aws.String("x")
	day := aws.Time(time.Now())
	for what, tt := range map[string]struct {
		fail func(http.ResponseWriter)
		want int64
	}{
		"cut": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 1}, "500": {status(500, "<Error><Code>InternalError</Code></Error>"), 1},
		"502": {status(502, ""), 1}, "504": {status(504, ""), 1},
		"SlowDown": {status(503, "<Error><Code>SlowDown</Code></Error>"), 2}, "429": {status(429, ""), 2},
	} {
		cfg := config(s.URL)
		awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy { return brisk(weir.Policy{}) }}).Attach(&cfg)
		c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
		for i, call := range []func() error{
			func() error { return put(t.Context(), c) },
			func() error {
				_, err := c.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: name, Key: name, CopySource: aws.String("b/k"), CopySourceIfNoneMatch: name})
				return err
			},
			func() error {
				_, err := c.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: name, Key: name, CopySource: aws.String("b/k"), CopySourceIfUnmodifiedSince: day})
				return err
			},
			func() error {
				_, err := c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: name, Key: name, IfMatch: name})
				return err
			},
		} {
			n.Store(0)
			fail = tt.fail
			if err := call(); n.Load() != tt.want || tt.want == 1 && err == nil {
				t.Errorf("%s, call %d: sent %d times, want %d, error %v", what, i, n.Load(), tt.want, err)
			}
		}
	}
}
