package drs_test

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func refusing(status int, code, after string, n *int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*n++
		w.Header().Set("X-Amzn-Errortype", code)
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"message":"no"}`))
	})
}

// Which errors are repeated, for an idempotent call and for StartRecovery.
func TestTheScheduleOfDRS(t *testing.T) {
	for _, c := range []struct {
		status           int
		code             string
		describes, start int // requests
	}{
		{429, "ThrottlingException", 4, 4}, {503, "RequestLimitExceeded", 4, 4}, {402, "ServiceQuotaExceededException", 4, 4},
		{503, "ServiceUnavailable", 4, 1}, {503, "ServiceUnavailableException", 4, 1},
		{500, "InternalServerException", 4, 1}, {500, "InternalServerError", 4, 1},
		{409, "ConflictException", 1, 1}, {400, "ValidationException", 1, 1}, {403, "AccessDeniedException", 1, 1},
		{400, "UninitializedAccountException", 1, 1}, {404, "ResourceNotFoundException", 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			cfg, end := inside(refusing(c.status, c.code, "", &n))
			defer end()
			_, err := drs.New(cfg, drs.Options{Attempts: 4}).DescribeSourceServers(t.Context(), &sdk.DescribeSourceServersInput{})
			if err == nil || n != c.describes || !strings.Contains(err.Error(), c.code) {
				t.Errorf("%s: a list was asked for %d times, want %d: %v", c.code, n, c.describes, err)
			}
			n = 0
			_, err = drs.New(cfg, drs.Options{Attempts: 4, LookFor: -1}).StartRecovery(t.Context(), recovering(oneServer))
			if err == nil || n != c.start {
				t.Errorf("%s: StartRecovery was sent %d times, want %d: %v", c.code, n, c.start, err)
			}
		})
	}
}

// Delays double, and a Retry-After of DRS is obeyed.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		status      int
		code, after string
		least, most time.Duration
	}{
		{429, "ThrottlingException", "", 15500 * time.Millisecond, 46500 * time.Millisecond}, // 1s+2s+4s+8s+16s, times 0.5 to 1.5
		{429, "ThrottlingException", "30", 150 * time.Second, 180 * time.Second},
		{500, "InternalServerException", "30", 150 * time.Second, 180 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			cfg, end := inside(refusing(c.status, c.code, c.after, &n))
			defer end()
			begin := time.Now()
			_, err := drs.New(cfg, drs.Options{}).DescribeJobs(t.Context(), &sdk.DescribeJobsInput{})
			gaveUp, ok := errors.AsType[*retry.GaveUpError](err)
			if took := time.Since(begin); !ok || gaveUp.Attempts != n || n != 6 || took < c.least || took > c.most {
				t.Errorf("%s after %q: %d attempts in %v, want 6 in %v to %v: %v", c.code, c.after, n, took, c.least, c.most, err)
			}
		})
	}
}

// Without a server no recovery was started, so there is no job to look for.
func TestAnAddressAtWhichNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c := drs.New(config("http://"+l.Addr().String()), drs.Options{Attempts: 3, Base: time.Millisecond})
	_, err = c.StartRecovery(t.Context(), recovering(oneServer))
	gaveUp, ok := errors.AsType[*retry.GaveUpError](err)
	if _, unknown := errors.AsType[*drs.UnknownError](err); unknown || !ok || !gaveUp.Outcome.Unsent {
		t.Error(err)
	}
}

// Errors that the caller caused name their cause, immediately and without a secret.
func TestErrorsNameTheirCause(t *testing.T) {
	const secret = "of-the-caller"
	server := &drstest.Server{
		Verify:  &sigtest.Verifier{Secrets: map[string]string{"AKID": secret, "AKOLD": secret}},
		Expired: func(key string) bool { return key == "AKOLD" },
	}
	cfg := listening(t, server)
	as := func(key, secret string) aws.Config {
		c := cfg.Copy()
		c.Credentials = credentials.NewStaticCredentialsProvider(key, secret, "")
		return c
	}
	nowhere := as("AKID", secret)
	nowhere.Region, nowhere.BaseEndpoint, nowhere.HTTPClient = "xx-nowhere-9", nil, noHost{}
	regionless := as("AKID", secret)
	regionless.Region, regionless.BaseEndpoint = "", nil
	anonymous := cfg.Copy()
	anonymous.Credentials = nil
	for want, c := range map[string]aws.Config{
		"credentials have expired":                   as("AKOLD", secret),
		"does not know this access key":              as("AKNEW", secret),
		"secret key does not belong":                 as("AKID", secret+"x"),
		"there are no credentials":                   anonymous,
		"region eu-west-1: there are no credentials": as("", ""),
		`unknown host drs.xx-nowhere-9.amazonaws.com: does drs exist in region "xx-nowhere-9"`: nowhere,
		"no region is set": regionless,
	} {
		begin := time.Now()
		_, err := drs.New(c, drs.Options{Base: time.Minute, Cap: time.Minute}).StartRecovery(t.Context(), recovering(oneServer))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("want %q: %v", want, err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("%q took %v: it was repeated", want, took)
		}
	}
	if server.Recoveries() != 0 {
		t.Errorf("%d recoveries were started", server.Recoveries())
	}
}

// noHost is a network in which no host name resolves.
type noHost struct{}

func (noHost) Do(r *http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: r.URL.Hostname(), IsNotFound: true}}
}

// DRS refuses a job beyond its quota of jobs with 402 ServiceQuotaExceededException. Events, logs and metrics report it as a
// throttle.
func TestQuotaOfJobsIsThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		cfg, end := inside(refusing(402, "ServiceQuotaExceededException", "", &sent))
		defer end()
		var classes []outcome.Class
		client := drs.New(cfg, drs.Options{Events: weir.Events{Ended: func(e weir.Ended) { classes = append(classes, e.Outcome.Class) }}})
		_, err := client.StartRecovery(t.Context(), recovering(oneServer))
		if err == nil || len(classes) != 6 || slices.ContainsFunc(classes, func(c outcome.Class) bool { return c != outcome.Throttled }) {
			t.Errorf("%v: %v", classes, err)
		}
	})
}
