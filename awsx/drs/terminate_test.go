package drs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"

	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/internal/test/drstest"
)

// launched returns an instance of a completed recovery.
func launched(t *testing.T, c *drs.Client) string {
	t.Helper()
	if _, err := c.StartRecovery(t.Context(), recovering(oneServer)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	out, err := c.DescribeRecoveryInstances(t.Context(), &sdk.DescribeRecoveryInstancesInput{})
	if err != nil || len(out.Items) == 0 {
		t.Fatalf("no instances: %v", err)
	}
	return aws.ToString(out.Items[len(out.Items)-1].RecoveryInstanceID)
}

func terminating(id string) *sdk.TerminateRecoveryInstancesInput {
	return &sdk.TerminateRecoveryInstancesInput{RecoveryInstanceIDs: []string{id}}
}

// Terminating is repeated. If the second request is refused because the first succeeded, the result is the first's job.
func TestALostAnswerToTerminate(t *testing.T) {
	for fault, requests := range map[drstest.Fault]int{
		drstest.None: 1, drstest.LostAfter: 2, drstest.FailAfter: 2, drstest.CutAfter: 2, drstest.LostBefore: 2, drstest.Busy: 2,
	} {
		synctest.Test(t, func(t *testing.T) {
			server := drstest.AWS()
			cfg, end := inside(server)
			defer end()
			c := drs.New(cfg, drs.Options{})
			id := launched(t, c)
			server.Fault = first("TerminateRecoveryInstances", fault)
			out, err := c.TerminateRecoveryInstances(t.Context(), terminating(id))
			if err != nil || out.Job == nil || out.Job.Type != types.JobTypeTerminate || server.Requests("TerminateRecoveryInstances") != requests {
				t.Fatalf("fault %d: sent %d times, want %d: %v", fault, server.Requests("TerminateRecoveryInstances"), requests, err)
			}
			time.Sleep(time.Hour)
			if all, err := c.DescribeRecoveryInstances(t.Context(), &sdk.DescribeRecoveryInstancesInput{}); err != nil || len(all.Items) != 0 {
				t.Errorf("fault %d: %d instances are left: %v", fault, len(all.Items), err)
			}
		})
	}
}

// A conflict that the call did not cause is returned, without a search for jobs.
func TestAConflictIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		cfg, end := inside(server)
		defer end()
		c := drs.New(cfg, drs.Options{})
		in := terminating(launched(t, c))
		if _, err := c.TerminateRecoveryInstances(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		_, err := c.TerminateRecoveryInstances(t.Context(), in)
		if _, ok := errors.AsType[*types.ConflictException](err); !ok || server.Requests("DescribeJobs") != 0 || server.Requests("TerminateRecoveryInstances") != 2 {
			t.Error(err)
		}
		if _, err := c.TerminateRecoveryInstances(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "RecoveryInstanceIDs") {
			t.Errorf("without instances: %v", err)
		}
	})
}
