package awsx

import (
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
)

type resultsKey struct{}

// Results returns every attempt of a call, from the ResultMetadata of its output. retry.GetAttemptResults only has the last
// attempt, because the SDK's loop makes one.
func Results(m middleware.Metadata) retry.AttemptResults {
	if r, ok := m.Get(resultsKey{}).(retry.AttemptResults); ok {
		return r
	}
	return retry.AttemptResults{Results: resultsOf(m)}
}

func resultsOf(m middleware.Metadata) []retry.AttemptResult {
	r, _ := retry.GetAttemptResults(m)
	return r.Results
}

// remember adds the attempts before the last to the metadata.
func (p *passage) remember() {
	if len(p.before) == 0 {
		return
	}
	for i := range p.before {
		p.before[i].Retryable, p.before[i].Retried = true, true
	}
	p.metadata.Set(resultsKey{}, retry.AttemptResults{Results: append(p.before, resultsOf(p.metadata)...)})
}
