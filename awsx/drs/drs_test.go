package drs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/awsx/drs/drstest"
	"github.com/seed1158cd35/weir/awsx/resign/sigtest"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/jobs"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/retry"
)

func config(url string) aws.Config {
	return aws.Config{Region: "eu-west-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}
}

// hasty is a clock on which nobody sleeps.
type hasty struct{ clock.Clock }

func (hasty) Sleep(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

// quick is the policy of DRS with retries that tests need not wait for.
func quick(rate bucket.Rate) *awsx.Guard {
	return awsx.New(awsx.Options{Policy: func(t awsx.Target) weir.Policy {
		p := awsx.Preset(t.Service)
		p.Retry.Base, p.Retry.Cap, p.Retry.MaxHint, p.Retry.HintSlack = time.Millisecond, time.Millisecond, time.Hour, time.Millisecond
		p.Limits = []limit.Limit{{Name: "requests", Rate: rate}}
		p.MaxWait = time.Minute
		p.MaxPause = time.Millisecond
		p.Breaker.Failures = 1000
		p.Budget = retry.BudgetConfig{Share: 1, Floor: 1e6}
		return p
	}})
}

var recovery = &sdk.StartRecoveryInput{SourceServers: []types.StartRecoveryRequestSourceServer{{SourceServerID: aws.String("s-00000000000000001")}}}

// Fifty workers want more than DRS bears: it never refuses one, and is kept busy.
func TestFiftyWorkersAreNeverThrottled(t *testing.T) {
	const rate, burst, calls = 100, 20, 300
	server := &drstest.Server{Rate: rate, Burst: burst, Verify: &sigtest.Verifier{Secrets: map[string]string{"AKID": "secret"}}}
	s := httptest.NewServer(server)
	defer s.Close()
	c := drs.New(config(s.URL), drs.Options{Guard: quick(bucket.Rate{Amount: rate, Per: time.Second, Burst: burst - 2})})
	var left, bad atomic.Int64
	left.Store(calls)
	begin := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := c.DescribeSourceServers(t.Context(), &sdk.DescribeSourceServersInput{}); err != nil {
					t.Log(err)
					bad.Add(1)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	ideal := time.Duration(float64(calls-burst) / rate * float64(time.Second))
	t.Logf("%d calls in %v, at best in %v: %.1f%% of the rate", calls, took, ideal, 100*ideal.Seconds()/took.Seconds())
	if bad.Load() > 0 || server.Throttled() > 0 || server.Requests("DescribeSourceServers") != calls {
		t.Errorf("%d failed, %d throttled, %d sent", bad.Load(), server.Throttled(), server.Requests("DescribeSourceServers"))
	}
}

// Whatever goes wrong on the way, a call that succeeds has started one recovery, and one
// that does not has started one at most.
func TestNoRecoveryIsStartedTwice(t *testing.T) {
	unknown := 0
	for range 1000 {
		seed := rand.Uint64()
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, 1))
		server := &drstest.Server{PageSize: 1 + rng.IntN(3), Fault: func(string) drstest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if rng.IntN(2) == 0 {
				return drstest.None
			}
			return drstest.Fault(rng.IntN(7))
		}}
		s := httptest.NewUnstartedServer(server)
		s.Config.ErrorLog = nil
		s.Start()
		c := drs.New(config(s.URL), drs.Options{Guard: quick(bucket.Rate{Amount: 1e6, Per: time.Second}), Clock: hasty{clock.System}})
		good, doubtful := 0, 0
		seen := map[string]bool{}
		for range 3 {
			before := server.Recoveries()
			out, err := c.StartRecovery(context.Background(), recovery)
			started := server.Recoveries() - before
			var lost *drs.UnknownError
			switch {
			case err == nil:
				if good++; started != 1 || seen[*out.Job.JobID] {
					t.Fatalf("seed %#x: %d were started: %s", seed, started, *out.Job.JobID)
				}
				seen[*out.Job.JobID] = true
			case errors.As(err, &lost):
				doubtful++
				if started > 1 || lost.Tag == "" {
					t.Fatalf("seed %#x: %d were started: %v", seed, started, err)
				}
			case started != 0:
				t.Fatalf("seed %#x: %d were started by a call that failed: %v", seed, started, err)
			}
		}
		unknown += doubtful
		s.Close()
	}
	t.Logf("%d of 3000 could not be known", unknown)
	if unknown > 1500 {
		t.Errorf("%d of 3000 calls ended without an answer", unknown)
	}
}

func TestPaginatorsAndOperations(t *testing.T) {
	server := &drstest.Server{PageSize: 2}
	s := httptest.NewServer(server)
	defer s.Close()
	c := drs.New(config(s.URL), drs.Options{})
	n := 0
	for p := sdk.NewDescribeSourceServersPaginator(c, &sdk.DescribeSourceServersInput{}); p.HasMorePages(); {
		page, err := p.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Items)
	}
	if n != 5 || server.Requests("DescribeSourceServers") != 3 {
		t.Errorf("%d servers on %d pages", n, server.Requests("DescribeSourceServers"))
	}
	out, err := c.StartRecovery(t.Context(), recovery)
	if err != nil || out.Job.Tags[drs.CallTag] == "" || recovery.Tags != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if ids, err := c.Active(t.Context()); err != nil || len(ids) != 1 || ids[0] != *out.Job.JobID {
		t.Errorf("active %v, %v", ids, err)
	}
	if _, err := c.DescribeRecoveryInstances(t.Context(), &sdk.DescribeRecoveryInstancesInput{}); err != nil {
		t.Error(err)
	}
	if _, err := c.TerminateRecoveryInstances(t.Context(), &sdk.TerminateRecoveryInstancesInput{RecoveryInstanceIDs: []string{"i-1"}}); err != nil {
		t.Error(err)
	}
	if _, err := c.StartRecovery(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "SourceServers") {
		t.Errorf("without servers: %v", err)
	}
}

// A quota that is used up is asked for again, as the schedule of DRS says; bad requests
// are not.
func TestTheScheduleOfDRS(t *testing.T) {
	server := &drstest.Server{MaxJobs: 1}
	s := httptest.NewServer(server)
	defer s.Close()
	c := drs.New(config(s.URL), drs.Options{Guard: quick(bucket.Rate{Amount: 1e6, Per: time.Second}), Clock: hasty{clock.System}})
	if _, err := c.StartRecovery(t.Context(), recovery); err != nil {
		t.Fatal(err)
	}
	_, err := c.StartRecovery(t.Context(), recovery)
	gaveUp, ok := errors.AsType[*retry.GaveUpError](err)
	if !ok || gaveUp.Attempts != 6 || server.Recoveries() != 1 {
		t.Errorf("%d recoveries: %v", server.Recoveries(), err)
	}
	before := server.Requests("StartRecovery")
	if _, err = c.StartRecovery(t.Context(), &sdk.StartRecoveryInput{SourceServers: []types.StartRecoveryRequestSourceServer{}}); err == nil || server.Requests("StartRecovery") != before+1 {
		t.Errorf("a bad request was sent %d times: %v", server.Requests("StartRecovery")-before, err)
	}
}

// Jobs of DRS under the throttle, by many processes.
func TestJobsOfDRSAreBounded(t *testing.T) {
	server := &drstest.Server{MaxJobs: 5, PageSize: 2}
	s := httptest.NewServer(server)
	defer s.Close()
	store := limit.NewMemory(nil)
	var started atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		c := drs.New(config(s.URL), drs.Options{Guard: quick(bucket.Rate{Amount: 1e6, Per: time.Second})})
		throttle, err := jobs.New(jobs.Options{Active: c.Active, Threshold: 3, Max: 5, Timeout: -1, Store: store, Group: "drs"})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			_, err := throttle.Start(t.Context(), func(ctx context.Context) (string, error) {
				out, err := c.StartRecovery(ctx, recovery)
				if err != nil {
					return "", err
				}
				return *out.Job.JobID, nil
			})
			if full := (*jobs.CapacityError)(nil); err == nil {
				started.Add(1)
			} else if !errors.As(err, &full) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if started.Load() != 3 || server.Recoveries() != 3 {
		t.Errorf("%d started, %d at the server, want 3", started.Load(), server.Recoveries())
	}
}

func TestBadCredentialsAndRegions(t *testing.T) {
	s := httptest.NewServer(&drstest.Server{Verify: &sigtest.Verifier{Secrets: map[string]string{"AKID": "another secret"}}})
	defer s.Close()
	c := drs.New(config(s.URL), drs.Options{})
	if _, err := c.DescribeJobs(t.Context(), &sdk.DescribeJobsInput{}); err == nil || !strings.Contains(err.Error(), "AccessDeniedException") || strings.Contains(fmt.Sprint(err), "secret ") {
		t.Error(err)
	}
	off := drs.New(config(s.URL), drs.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := off.DescribeJobs(ctx, &sdk.DescribeJobsInput{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
