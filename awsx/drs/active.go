package drs

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"
)

// ActiveJobs returns a function that lists the IDs of pending or started jobs, for jobs.Options.Active. The client may be this
// package's or the SDK's.
func ActiveJobs(client sdk.DescribeJobsAPIClient) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) { return Active(ctx, client) }
}

// Active returns the IDs of the jobs that are pending or started. If a page fails, it returns only an error: a partial list would
// look like free capacity.
func Active(ctx context.Context, client sdk.DescribeJobsAPIClient) (ids []string, err error) {
	for pages := sdk.NewDescribeJobsPaginator(client, &sdk.DescribeJobsInput{}); pages.HasMorePages(); {
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
