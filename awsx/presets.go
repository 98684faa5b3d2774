package awsx

import (
	"cmp"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/retry"
)

// learnt is the maximum of an adaptive rate without a published quota.
const learnt = 10_000

// Preset returns the policy of a service, by its name in signatures: the quotas that AWS publishes, the retries of the SDKs, and
// the default breaker for each account and region. An unknown service has no limits.
//
// DynamoDB publishes the capacity of tables in units that a request does not reveal beforehand, and Bedrock counts tokens
// differently for each account. Their limits are adaptive, for each table or model.
func Preset(service string) weir.Policy {
	patient, quota := patience()
	p := weir.Policy{
		Retry: patient, Quota: &quota,
		// The SDK has no timeouts except the caller's.
		Timeouts: weir.Timeouts{Attempt: -1, Call: -1},
	}
	for _, q := range quotas[service] {
		p.Limits = append(p.Limits, q.limit())
	}
	switch service {
	case "s3":
		// S3 splits a busy prefix, and throttles until it has. A prefix begins with half of the published rate and adapts to its
		// own throttles.
		for i := range p.Limits {
			l := &p.Limits[i]
			l.Adaptive.On, l.Adaptive.Start = true, l.PerSecond()/2
		}
	case "drs":
		p.Retry, _ = retry.Schedule("drs")
		p.Retry.Codes = drsCodes
		p.Classify.Throttled = []string{"ServiceQuotaExceededException"} // too many jobs at the same time: the call had no effect
		p.MaxWait = 30 * time.Second
		// A call makes six attempts over half a minute. A breaker that other calls open would shorten it. While no call succeeds,
		// retries are held back instead.
		p.Breaker.Off = true
	case "dynamodb":
		p.Limits = append(p.Limits, learning("reads", Table, dynamoReads), learning("writes", Table, dynamoWrites))
	case "bedrock":
		p.Limits = append(p.Limits, learning("model", Model, nil))
		p.Retry.Base = 500 * time.Millisecond // requests that take seconds are not repeated immediately
	}
	return p
}

// patience returns retries that last longer than the SDK's old and new (2026) retries, with no more attempts: see
// docs/reference/presets.md.
func patience() (retry.Config, retry.QuotaConfig) {
	c, _ := retry.Schedule("aws-patient")
	q, _ := retry.QuotaSchedule("aws-patient")
	return c, q
}

func (q *quota) limit() limit.Limit {
	return limit.Limit{
		Name: q.name, Operations: q.operations, Scope: q.scope, Unit: q.unit,
		Rate: bucket.Rate{Amount: q.amount, Per: cmp.Or(q.per, time.Second), Burst: q.burst},
	}
}

func learning(name, scope string, operations []string) limit.Limit {
	l := limit.Limit{Name: name, Scope: scope, Operations: operations, Rate: bucket.Rate{Amount: learnt, Per: time.Second, Burst: learnt / 10}}
	l.Adaptive.On = true
	return l
}

// drsCodes are the error codes for which calls of DRS are repeated.
var drsCodes = []string{"ThrottlingException", "RequestLimitExceeded", "ServiceUnavailable", "InternalServerException", "ServiceQuotaExceededException"}
