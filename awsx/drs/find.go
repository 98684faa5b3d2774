package drs

import (
	"context"
	"errors"
	"slices"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"
	"github.com/aws/smithy-go/middleware"
)

// A match reports whether a job is a wanted one. fresh means that the job may have been created since the call began.
type match func(j *types.Job, fresh bool) bool

const (
	parting = 5 * time.Second // how long to look for jobs after the caller has left
	slack   = 2 * time.Minute // maximum difference between the clocks of a region's servers
)

var errLooked = errors.New("no job was found in time")

// find looks for jobs of a call that began at an instant. It looks immediately, a second later, and then with doubling intervals,
// because DRS may list a job some time after it created it. If the caller has already left, find looks for a short time only.
func (c *Client) find(ctx context.Context, began time.Duration, is match) (found []types.Job, err error) {
	patience := c.lookFor
	if ctx.Err() != nil {
		ctx, patience = context.WithoutCancel(ctx), min(patience, parting)
	}
	if patience <= 0 {
		return nil, nil
	}
	ctx, cancel := c.clock.WithTimeout(ctx, patience, errLooked)
	defer cancel()
	for wait, left := time.Second, patience; ; wait *= 2 {
		if found, err = c.listed(ctx, began, is); len(found) > 0 {
			return found, nil
		}
		if left -= wait; left < 0 || c.clock.Sleep(ctx, wait) != nil {
			return nil, err
		}
	}
}

// A request with a server error is repeated only after this many lists without its job, over this time.
const (
	confirmations = 3
	confirmFor    = time.Minute
)

// absent reports whether DRS lists no job for the servers of a call since it began, in three responses over a minute. It returns
// false earlier if there is a job, if a response is missing, or if ctx does not leave enough time.
func (c *Client) absent(ctx context.Context, began time.Duration, call *sdk.StartRecoveryInput) bool {
	from := c.clock.Now()
	if deadline, ok := ctx.Deadline(); c.lookFor <= 0 || ok && deadline.Sub(c.clock.Wall(from)) <= confirmFor {
		return false
	}
	want := servers(call)
	for i := range confirmations {
		if i > 0 && c.clock.Sleep(ctx, confirmFor/(confirmations-1)) != nil {
			return false
		}
		found, err := c.listed(ctx, began, func(j *types.Job, fresh bool) bool { return fresh && concerns(j, want) })
		if err != nil || len(found) > 0 {
			return false
		}
	}
	return c.clock.Now()-from >= confirmFor
}

// concerns reports whether one of the servers participates in a job.
func concerns(j *types.Job, want []string) bool {
	return slices.ContainsFunc(j.ParticipatingServers, func(s types.ParticipatingServer) bool { return slices.Contains(want, deref(s.SourceServerID)) })
}

// listed returns the matching jobs. DRS lists the latest jobs first, so the search ends at the first job older than the call. If
// the call's start is unknown, it covers all jobs.
func (c *Client) listed(ctx context.Context, began time.Duration, is match) (found []types.Job, err error) {
	for pages := sdk.NewDescribeJobsPaginator(c, &sdk.DescribeJobsInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, err
		}
		since, old := c.since(began, page.ResultMetadata), 0
		for _, j := range page.Items {
			fresh := !before(&j, since)
			if !fresh {
				old++
			}
			if is(&j, fresh) {
				found = append(found, j)
			}
		}
		if old > 0 && old == len(page.Items) {
			break
		}
	}
	return found, nil
}

// since returns the earliest time at which a call began, by DRS's clock: it is computed from the response, because the local
// clock may be wrong. Zero means unknown.
func (c *Client) since(began time.Duration, answer middleware.Metadata) time.Time {
	now, ok := awsmiddleware.GetServerTime(answer)
	if !ok || began == 0 {
		return time.Time{}
	}
	return now.Add(began - c.clock.Now() - slack)
}

// before reports whether a job was certainly created before the time.
func before(j *types.Job, since time.Time) bool {
	created, err := time.Parse(time.RFC3339, deref(j.CreationDateTime))
	return err == nil && created.Before(since)
}

// takesPart reports whether the participants of a job are exactly these IDs.
func takesPart(j *types.Job, want []string, id func(types.ParticipatingServer) *string) bool {
	got := make([]string, 0, len(j.ParticipatingServers))
	for _, s := range j.ParticipatingServers {
		got = append(got, deref(id(s)))
	}
	return slices.Equal(sorted(got), sorted(want))
}

func sorted(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }
