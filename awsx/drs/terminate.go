package drs

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"
)

// TerminateRecoveryInstances terminates instances. It is repeated like a read: what is
// terminated twice is terminated, so a second request does no harm. But it may be refused
// because the first, whose answer was lost, had its effect. So when attempts may have been
// done and the call failed all the same, a job that terminates these instances, created
// since the call began, is looked for and returned. Whose it is does not matter. If there
// is none the error is the call's, and to call again is safe.
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
