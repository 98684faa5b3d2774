package drs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"

	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/jobs"
	"github.com/seed1158cd35/weir/internal/test/drstest"
)

// client is the part of the SDK's client that a disaster recovery program needs.
type client interface {
	sdk.DescribeJobsAPIClient
	sdk.DescribeSourceServersAPIClient
	sdk.DescribeRecoveryInstancesAPIClient
	StartRecovery(context.Context, *sdk.StartRecoveryInput, ...func(*sdk.Options)) (*sdk.StartRecoveryOutput, error)
	TerminateRecoveryInstances(context.Context, *sdk.TerminateRecoveryInstancesInput, ...func(*sdk.Options)) (*sdk.TerminateRecoveryInstancesOutput, error)
}

var _, _ client = (*sdk.Client)(nil), (*drs.Client)(nil)

// The SDK's paginators wait for their turn before every page.
func TestPaginators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		server.PageSize, server.Sources = 2, 96
		cfg, end := inside(server)
		defer end()
		c := drs.New(cfg, drs.Options{})
		begin, n := time.Now(), 0
		for p := sdk.NewDescribeSourceServersPaginator(c, &sdk.DescribeSourceServersInput{}); p.HasMorePages(); {
			page, err := p.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n += len(page.Items)
		}
		if took := time.Since(begin); n != 96 || server.Requests("DescribeSourceServers") != 48 || took != 2800*time.Millisecond || server.Throttled() != 0 {
			t.Errorf("%d servers on %d pages in %v, want 96 on 48 in 2.8s; %d throttled", n, server.Requests("DescribeSourceServers"), took, server.Throttled())
		}
	})
}

// Options of one call work as with the SDK, and the input is not modified.
func TestCallsAsWithTheSDK(t *testing.T) {
	server := &drstest.Server{PageSize: 2}
	c := drs.New(listening(t, server), drs.Options{})
	in := recovering(oneServer)
	in.Tags = map[string]string{"team": "storage"}
	elsewhere := make([]func(*sdk.Options), 1, 4)
	elsewhere[0] = func(o *sdk.Options) { o.Region = "us-east-1" }
	out, err := c.StartRecovery(t.Context(), in, elsewhere...)
	if err != nil || out.Job.Tags["team"] != "storage" || out.Job.Tags[drs.CallTag] == "" || len(in.Tags) != 1 || elsewhere[:2][1] != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if here, err := c.DescribeJobs(t.Context(), &sdk.DescribeJobsInput{}); err != nil || len(here.Items) != 0 {
		t.Errorf("jobs of another region: %+v, %v", here, err)
	}
	there, err := c.DescribeJobs(t.Context(), nil, elsewhere...)
	if err != nil || len(there.Items) != 1 || *there.Items[0].JobID != *out.Job.JobID {
		t.Errorf("%+v, %v", there, err)
	}
	if _, err := c.StartRecovery(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "SourceServers") {
		t.Errorf("without servers: %v", err)
	}
}

func TestActiveJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		server.PageSize = 2
		cfg, end := inside(server)
		defer end()
		c := drs.New(cfg, drs.Options{})
		var want []string
		for i := range 7 {
			out, err := c.StartRecovery(t.Context(), recovering(oneServer))
			if err != nil {
				t.Fatal(err)
			}
			if i >= 3 {
				want = append(want, *out.Job.JobID)
			}
			if i == 2 {
				time.Sleep(10 * time.Minute)
			}
		}
		time.Sleep(6 * time.Minute)
		slices.Reverse(want)
		if got, err := drs.ActiveJobs(c)(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("active %v, want %v: %v", got, want, err)
		}
		server.Fault = func(string) drstest.Fault { return drstest.LostAfter }
		if got, err := drs.ActiveJobs(c)(t.Context()); err == nil || got != nil {
			t.Errorf("%v of DRS that does not answer: %v", got, err)
		}
	})
}

// Many processes start DRS jobs under the throttle: never more than the threshold at the same time, and every job in the end. A
// job that DRS lists before its starter gets the response counts twice for a moment, so another start may be refused
// unnecessarily.
func TestJobsOfDRSAreBounded(t *testing.T) {
	server := &drstest.Server{MaxJobs: 5, PageSize: 2}
	cfg := listening(t, server)
	store := fleet.NewMemory(nil)
	var started atomic.Int64
	start := func() {
		c := drs.New(cfg, drs.Options{})
		throttle, err := jobs.New(jobs.Options{Active: drs.ActiveJobs(c), Threshold: 3, Max: 5, Timeout: -1, Store: store, Group: "drs"})
		if err != nil {
			t.Error(err)
			return
		}
		_, err = throttle.Start(t.Context(), func(ctx context.Context) (string, error) {
			out, err := c.StartRecovery(ctx, recovering(oneServer))
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
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(start)
	}
	wg.Wait()
	if n := started.Load(); n < 2 || n > 3 || server.Recoveries() != int(n) {
		t.Errorf("%d started at once, %d at the server, want 2 or 3", n, server.Recoveries())
	}
	for range 3 {
		start()
	}
	if started.Load() != 3 || server.Recoveries() != 3 {
		t.Errorf("%d started, %d at the server, want 3", started.Load(), server.Recoveries())
	}
}

// A start with an unknown result keeps its slot until DRS would list its job.
func TestAnUnknownStartKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		server.Fault = first("StartRecovery", drstest.LostBefore)
		cfg, end := inside(server)
		defer end()
		c := drs.New(cfg, drs.Options{})
		throttle, err := jobs.New(jobs.Options{Active: drs.ActiveJobs(c), Threshold: 1, Timeout: -1})
		if err != nil {
			t.Fatal(err)
		}
		start := func(ctx context.Context) (string, error) {
			out, err := c.StartRecovery(ctx, recovering(oneServer))
			if err != nil {
				return "", err
			}
			return *out.Job.JobID, nil
		}
		if _, err := throttle.Start(t.Context(), start); !errors.Is(err, jobs.ErrUnknown) {
			t.Fatal(err)
		}
		if _, err := throttle.Start(t.Context(), start); !strings.Contains(err.Error(), jobs.Code) {
			t.Errorf("its place was given away: %v", err)
		}
		time.Sleep(3 * time.Minute)
		if _, err := throttle.Start(t.Context(), start); err != nil {
			t.Error(err)
		}
	})
}
