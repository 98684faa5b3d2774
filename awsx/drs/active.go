package drs

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"
)

// ActiveJobs asks a client, this package's or the SDK's, for the ids of the jobs that are
// pending or started, page by page: it is what jobs.Options.Active wants.
func ActiveJobs(client sdk.DescribeJobsAPIClient) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) { return Active(ctx, client) }
}

// Active are the ids of the jobs that are pending or started. If a page cannot be had
// there are none and an error: a part of them would look like room for more.
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
