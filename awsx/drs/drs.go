// Package drs is a client of AWS Elastic Disaster Recovery that stays inside its quotas
// (10 requests a second, bursts of 20, for each account and region), repeats what can be
// repeated, and never starts a recovery twice.
//
//	client := drs.New(cfg, drs.Options{})
//	out, err := client.StartRecovery(ctx, in)
//
// It is the SDK's client with other manners: whatever takes one takes this, paginators
// included.
package drs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"

	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Options are how a client behaves. The zero Options are for a program that has no other
// client of the account and region.
type Options struct {
	// Guard is whose limits the client shares; nil means its own, by awsx.Preset.
	Guard *awsx.Guard

	// Looks is how often a job is looked for whose start was not answered, a second
	// apart and then twice as long each time; 0 means 4.
	Looks int

	Clock clock.Clock // nil means the system's

	// Client changes the SDK's client.
	Client []func(*sdk.Options)
}

// A Client calls DRS. It is safe for concurrent use.
type Client struct {
	*sdk.Client
	o     Options
	clock clock.Clock
}

var (
	_ sdk.DescribeJobsAPIClient              = (*Client)(nil)
	_ sdk.DescribeSourceServersAPIClient     = (*Client)(nil)
	_ sdk.DescribeRecoveryInstancesAPIClient = (*Client)(nil)
)

// New makes a client of a configuration.
func New(cfg aws.Config, o Options) *Client {
	if o.Guard == nil {
		o.Guard = awsx.New(awsx.Options{})
	}
	if o.Looks <= 0 {
		o.Looks = 4
	}
	guarded := cfg.Copy()
	o.Guard.Attach(&guarded)
	c := &Client{Client: sdk.NewFromConfig(guarded, o.Client...), o: o, clock: o.Clock}
	if c.clock == nil {
		c.clock = clock.System
	}
	return c
}

// CallTag is the tag by which a recovery job is known to be that of one call.
const CallTag = "weir:call"

// An UnknownError means that nobody answered whether a recovery was started, and that no
// job of it was found.
type UnknownError struct {
	Tag string // the value of CallTag that its job would have
	Err error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("it is not known whether the recovery was started: before it is started again, see with DescribeJobs that no job has the tag %s=%s (%v)", CallTag, e.Tag, e.Err)
}
func (e *UnknownError) Unwrap() error { return e.Err }

// StartRecovery starts a recovery once. If the answer is lost it looks for the job and
// returns it as if it had been answered. If there is none to be found, it may still
// come: the error is an *UnknownError, and nothing was repeated.
func (c *Client) StartRecovery(ctx context.Context, in *sdk.StartRecoveryInput, options ...func(*sdk.Options)) (*sdk.StartRecoveryOutput, error) {
	if in == nil {
		in = &sdk.StartRecoveryInput{}
	}
	tag := rand.Text()
	call := *in
	call.Tags = maps.Clone(in.Tags)
	if call.Tags == nil {
		call.Tags = make(map[string]string, 1)
	}
	call.Tags[CallTag] = tag
	out, err := c.Client.StartRecovery(ctx, &call, options...)
	if err == nil || !unknown(err) {
		return out, err
	}
	job, looked := c.find(context.WithoutCancel(ctx), tag)
	if job != nil {
		return &sdk.StartRecoveryOutput{Job: job}, nil
	}
	return nil, &UnknownError{tag, errors.Join(err, looked)}
}

// unknown reports whether a call that failed may have had its effect: it was sent, and
// not answered with a proof of the contrary.
func unknown(err error) bool {
	if gaveUp, ok := errors.AsType[*retry.GaveUpError](err); ok {
		o := gaveUp.Outcome
		return !o.Unsent && !o.Undone && o.Class != outcome.Rejected && o.Class != outcome.Throttled
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// find looks for the job of a call.
func (c *Client) find(ctx context.Context, tag string) (*types.Job, error) {
	var last error
	for i := range c.o.Looks {
		if err := c.clock.Sleep(ctx, time.Second<<i); err != nil {
			return nil, err
		}
		job, err := c.tagged(ctx, tag)
		if job != nil {
			return job, nil
		}
		last = err
	}
	return nil, last
}

func (c *Client) tagged(ctx context.Context, tag string) (*types.Job, error) {
	pages := sdk.NewDescribeJobsPaginator(c, &sdk.DescribeJobsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if page.Items[i].Tags[CallTag] == tag {
				return &page.Items[i], nil
			}
		}
	}
	return nil, nil
}

// Active is what jobs.Options.Active wants: the ids of the jobs that are pending or
// started.
func (c *Client) Active(ctx context.Context) (ids []string, err error) { return Active(ctx, c) }

// Active asks any client.
func Active(ctx context.Context, c sdk.DescribeJobsAPIClient) (ids []string, err error) {
	pages := sdk.NewDescribeJobsPaginator(c, &sdk.DescribeJobsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, j := range page.Items {
			if j.JobID != nil && (j.Status == types.JobStatusPending || j.Status == types.JobStatusStarted) {
				ids = append(ids, *j.JobID)
			}
		}
	}
	return ids, nil
}
