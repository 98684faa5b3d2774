package e2e

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsdrs "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/smithy-go/encoding/cbor"

	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/internal/test/served"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
)

// A cloudWatch receives the SDK's PutMetricData.
type cloudWatch struct {
	mu   sync.Mutex
	sums map[string]float64 // by namespace, name and dimensions in the order sent
	errs []error
}

func (c *cloudWatch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.add(r); err != nil {
		c.errs = append(c.errs, err)
	}
	w.Header().Set("smithy-protocol", "rpc-v2-cbor")
	w.Header().Set("Content-Type", "application/cbor")
	_, _ = w.Write(cbor.Encode(cbor.Map{}))
}

func (c *cloudWatch) add(r *http.Request) error {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		zip, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		body = zip
	}
	whole, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(r.URL.Path, "/operation/PutMetricData") || !strings.Contains(r.Header.Get("Authorization"), "/monitoring/aws4_request") {
		return fmt.Errorf("%s with %q is not a signed PutMetricData", r.URL, r.Header.Get("Authorization"))
	}
	value, err := cbor.Decode(whole)
	if err != nil {
		return err
	}
	input, _ := value.(cbor.Map)
	data, _ := input["MetricData"].(cbor.List)
	if len(data) == 0 {
		return fmt.Errorf("no metrics in %v", input)
	}
	if c.sums == nil {
		c.sums = make(map[string]float64)
	}
	for _, d := range data {
		datum, _ := d.(cbor.Map)
		series := fmt.Sprint(input["Namespace"], " ", datum["MetricName"])
		dimensions, _ := datum["Dimensions"].(cbor.List)
		for _, d := range dimensions {
			pair, _ := d.(cbor.Map)
			series += fmt.Sprint(" ", pair["Name"], "=", pair["Value"])
		}
		number, _ := datum["Value"].(cbor.Float64) // distributions have no value
		c.sums[series] += float64(number)
	}
	return nil
}

// wantDesign requires exactly these series of the four metrics of the DRS design.
func (c *cloudWatch) wantDesign(t *testing.T, want map[string]float64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(c.errs...); err != nil {
		t.Error(err)
	}
	got := make(map[string]float64)
	for series, sum := range c.sums {
		switch name := strings.Split(series, " ")[1]; weircw.Metric(name) {
		case weircw.RateLimitErrors, weircw.RetryAttempts, weircw.RetryExhausted, weircw.APICallCount:
			got[series] = sum
		}
	}
	if !maps.Equal(got, want) {
		for _, series := range slices.Sorted(maps.Keys(got)) {
			t.Logf("%v %s", got[series], series)
		}
		t.Errorf("CloudWatch has %d series of the design, want %d: %v", len(got), len(want), want)
	}
}

// faultyDRS returns a DRS that throttles the first DescribeJobs and all DescribeSourceServers. It fails the first
// DescribeRecoveryInstances and the first DescribeRecoverySnapshots, an operation that it lacks.
func faultyDRS() *drstest.Server {
	var mu sync.Mutex
	calls := make(map[string]int)
	return &drstest.Server{Fault: func(operation string) drstest.Fault {
		mu.Lock()
		defer mu.Unlock()
		calls[operation]++
		switch {
		case operation == "DescribeSourceServers", operation == "DescribeJobs" && calls[operation] == 1:
			return drstest.Busy
		case strings.HasPrefix(operation, "DescribeRecovery") && calls[operation] == 1:
			return drstest.FailBefore
		}
		return drstest.None
	}}
}

// ofDesign returns the series of one call per operation of faultyDRS, with a maximum number of attempts.
func ofDesign(attempts int) map[string]float64 {
	const where = "Region=eu-central-1 Operation="
	all := map[string]float64{
		"RateLimitErrors ErrorType=ThrottlingException " + where + "DescribeJobs":          1,
		"RateLimitErrors ErrorType=ThrottlingException " + where + "DescribeSourceServers": float64(attempts),

		"RetryAttempts " + where + "DescribeJobs Attempt=2 Success=true":               1,
		"RetryAttempts " + where + "DescribeRecoveryInstances Attempt=2 Success=true":  1,
		"RetryAttempts " + where + "DescribeRecoverySnapshots Attempt=2 Success=false": 1,

		// A call that ends because of invalid input has not exhausted its retries.
		"RetryExhausted " + where + "DescribeSourceServers": 1,

		"APICallCount " + where + "DescribeJobs Success=true":                                                 1,
		"APICallCount " + where + "DescribeJobs Success=false ErrorCode=ThrottlingException":                  1,
		"APICallCount " + where + "DescribeSourceServers Success=false ErrorCode=ThrottlingException":         float64(attempts),
		"APICallCount " + where + "DescribeRecoveryInstances Success=true":                                    1,
		"APICallCount " + where + "DescribeRecoveryInstances Success=false ErrorCode=InternalServerException": 1,
		"APICallCount " + where + "DescribeRecoverySnapshots Success=false ErrorCode=InternalServerException": 1,
		"APICallCount " + where + "DescribeRecoverySnapshots Success=false ErrorCode=rejected":                1,
	}
	for n := 2; n <= attempts; n++ {
		all[fmt.Sprint("RetryAttempts ", where, "DescribeSourceServers Attempt=", n, " Success=false")] = 1
	}
	in := make(map[string]float64, len(all))
	for series, sum := range all {
		in["DRS/RateLimits "+series] = sum
	}
	return in
}

// A sidecar with the design's setting publishes its four metrics with exactly its dimensions, the last at shutdown.
func TestMetricsOfDRSDesignFromSidecar(t *testing.T) {
	watch := new(cloudWatch)
	receiver, far := httptest.NewServer(watch), httptest.NewServer(faultyDRS())
	t.Cleanup(receiver.Close)
	t.Cleanup(far.Close)
	w := served.Start(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: off
cloudwatch: {to: api, region: eu-central-1, namespace: DRS/RateLimits, design: drs}
upstreams:
  drs:
    url: %q
    preset: drs
    aws: {service: drs, region: eu-central-1}
    retry: {attempts: 3, base: 1ms, cap: 5ms}
`, far.URL), "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=SECRET", "AWS_EC2_METADATA_DISABLED=true", "AWS_ENDPOINT_URL_CLOUDWATCH="+receiver.URL)
	for operation, want := range map[string]int{
		"DescribeJobs": 200, "DescribeSourceServers": 429, "DescribeRecoveryInstances": 200, "DescribeRecoverySnapshots": 404,
	} {
		resp, err := http.Post("http://"+w.Serve.Listen+"/drs/"+operation, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", operation, resp.Status, want)
		}
	}
	w.Signal(syscall.SIGTERM)
	if err := w.Exited(); err != nil {
		t.Fatal(err)
	}
	watch.wantDesign(t, ofDesign(3))
}

// A Go program with the design's option publishes the same, with the six attempts of the design.
func TestMetricsOfDRSDesignFromGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		watch := new(cloudWatch)
		cfg := aws.Config{
			Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
			HTTPClient: &http.Client{Transport: n.Transport()},
		}
		receiver := cfg.Copy()
		receiver.BaseEndpoint = aws.String(n.Serve("monitoring.test", watch))
		cfg.BaseEndpoint = aws.String(n.Serve("drs.test", faultyDRS()))

		metrics, err := weircw.New(weircw.Config{Namespace: "DRS/RateLimits", Design: weircw.DRS, API: weircw.Client(receiver)})
		if err != nil {
			t.Fatal(err)
		}
		client := drs.New(cfg, drs.Options{Events: metrics.Events()})
		for operation, c := range map[string]struct {
			call func(context.Context) error
			want bool
		}{
			"DescribeJobs": {func(ctx context.Context) error {
				_, err := client.DescribeJobs(ctx, &awsdrs.DescribeJobsInput{})
				return err
			}, true},
			"DescribeSourceServers": {func(ctx context.Context) error {
				_, err := client.DescribeSourceServers(ctx, &awsdrs.DescribeSourceServersInput{})
				return err
			}, false},
			"DescribeRecoveryInstances": {func(ctx context.Context) error {
				_, err := client.DescribeRecoveryInstances(ctx, &awsdrs.DescribeRecoveryInstancesInput{})
				return err
			}, true},
			"DescribeRecoverySnapshots": {func(ctx context.Context) error {
				_, err := client.DescribeRecoverySnapshots(ctx, &awsdrs.DescribeRecoverySnapshotsInput{SourceServerID: aws.String("s-00000000000000001")})
				return err
			}, false},
		} {
			if err := c.call(t.Context()); (err == nil) != c.want {
				t.Errorf("%s: %v, want success %v", operation, err, c.want)
			}
		}
		if err := metrics.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		watch.wantDesign(t, ofDesign(6))
	})
}
