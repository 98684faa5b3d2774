package awsx

import (
	"cmp"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/retry"
)

// learnt is the ceiling under which a rate is learnt for which nothing is published.
const learnt = 10_000

// Preset is the policy of a service by the name under which its requests are signed: the
// quotas that AWS publishes, with the retries of the SDKs and the default breaker for each
// account and region. A service of which nothing is known has no limit.
//
// DynamoDB publishes what a table may do in units of capacity, which no request tells
// beforehand, and Bedrock counts tokens, differently for each account: there the rate
// of each table or model is learnt from what is refused.
func Preset(service string) weir.Policy {
	patient, quota := patience()
	p := weir.Policy{
		Retry: patient, Quota: &quota,
		// The SDK has no timeouts of its own but the caller's.
		Timeouts: weir.Timeouts{Attempt: -1, Call: -1},
	}
	for _, q := range quotas[service] {
		p.Limits = append(p.Limits, q.limit())
	}
	switch service {
	case "s3":
		// S3 splits a prefix that is busy, and refuses until it has: a prefix begins with
		// half of what is published and learns from its own throttles.
		for i := range p.Limits {
			l := &p.Limits[i]
			l.Adaptive.On, l.Adaptive.Start = true, l.PerSecond()/2
		}
	case "drs":
		p.Retry, _ = retry.Schedule("drs")
		p.Retry.Codes = drsCodes
		p.Classify.Throttled = []string{"ServiceQuotaExceededException"} // too many jobs at once: nothing was done
		p.MaxWait = 30 * time.Second
		// A call makes six attempts over half a minute. A breaker that others of them open would cut it short; while
		// nothing succeeds, retries are held back instead.
		p.Breaker.Off = true
	case "dynamodb":
		p.Limits = append(p.Limits, learning("reads", Table, dynamoReads), learning("writes", Table, dynamoWrites))
	case "bedrock":
		p.Limits = append(p.Limits, learning("model", Model, nil))
		p.Retry.Base = 500 * time.Millisecond // what takes seconds is not asked again at once
	}
	return p
}

// patience is what outlasts the SDK's own retries, those of 2026 included, and makes no
// more of them: see docs/reference/presets.md.
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

// learning is a limit whose rate is found out.
func learning(name, scope string, operations []string) limit.Limit {
	l := limit.Limit{Name: name, Scope: scope, Operations: operations, Rate: bucket.Rate{Amount: learnt, Per: time.Second, Burst: learnt / 10}}
	l.Adaptive.On = true
	return l
}

// drsCodes are what calls of DRS are repeated for.
var drsCodes = []string{"ThrottlingException", "RequestLimitExceeded", "ServiceUnavailable", "InternalServerException", "ServiceQuotaExceededException"}
