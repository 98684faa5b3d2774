package drs

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"
)

// TerminateRecoveryInstances terminates instances. It is retried like a read, because terminating twice does no harm. But a retry
// may be refused because the first attempt, whose response was lost, succeeded. So if the call fails after an attempt that may
// have had an effect, it looks for a job that terminates these instances and was created since the call began. It returns that
// job, even if another caller started it. If there is none it returns the call's error, and calling again is safe.
func (c *Client) TerminateRecoveryInstances(ctx context.Context, in *sdk.TerminateRecoveryInstancesInput, options ...func(*sdk.Options)) (*sdk.TerminateRecoveryInstancesOutput, error) {
	if in == nil {
		in = &sdk.TerminateRecoveryInstancesInput{}
	}
	a := new(attempts)
	began := c.clock.Now()
	out, err := c.Client.TerminateRecoveryInstances(ctx, in, a.on(options)...)
	if err == nil || a.doubt == nil {
		return out, err
	}
	found, _ := c.find(ctx, began, func(j *types.Job, fresh bool) bool {
		return fresh && j.Type == types.JobTypeTerminate && takesPart(j, in.RecoveryInstanceIDs, instanceID)
	})
	if len(found) > 0 {
		return &sdk.TerminateRecoveryInstancesOutput{Job: &found[0]}, nil
	}
	return nil, err
}

func instanceID(s types.ParticipatingServer) *string { return s.RecoveryInstanceID }
