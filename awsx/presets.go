package awsx

import (
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/retry"
)

// A quota is one that AWS publishes for an account and region: how much, for which
// operations, counted by what.
type quota struct {
	name       string
	perSecond  int64
	burst      int64
	operations []string // none means all
	scope      string
	source     string // where it stands; read in November 2026
}

const (
	s3Guide     = "docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html"
	ec2Guide    = "docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html"
	stsGuide    = "docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"
	lambdaGuide = "docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
	watchGuide  = "docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html"
)

var (
	s3Reads  = []string{"GetObject", "HeadObject", "ListObjects", "ListObjectsV2", "ListObjectVersions", "ListParts", "GetObjectAttributes", "GetObjectTagging", "GetObjectAcl", "SelectObjectContent"}
	s3Writes = []string{"PutObject", "CopyObject", "DeleteObject", "DeleteObjects", "CreateMultipartUpload", "UploadPart", "UploadPartCopy",
		"CompleteMultipartUpload", "AbortMultipartUpload", "PutObjectTagging", "PutObjectAcl", "RestoreObject"}
	stsAll = []string{"AssumeRole", "DecodeAuthorizationMessage", "GetAccessKeyInfo", "GetCallerIdentity", "GetFederationToken", "GetSessionToken"}
)

// quotas are the published ones that hold whatever an account has done before. Bursts
// are those that are published; where none is, a tenth of a second's worth, so that no
// second has more than the quota by more than that.
//
// DynamoDB publishes throughput of tables, which is capacity and no request rate, and
// Bedrock quotas of each model, which differ between accounts: for them the rate is
// learnt from what is refused.
var quotas = map[string][]quota{
	"s3": {
		{"reads", 5500, 550, s3Reads, Prefix, s3Guide},
		{"writes", 3500, 350, s3Writes, Prefix, s3Guide},
	},
	"drs": {{"requests", 10, 20, nil, "", "the account's Service Quotas: 10 requests a second, bursts of 20"}},
	"sts": {{"requests", 600, 60, stsAll, "", stsGuide}},
	"monitoring": {
		{"get-metric-data", 50, 5, []string{"GetMetricData"}, "", watchGuide},
		{"describe-alarms", 9, 1, []string{"DescribeAlarms"}, "", watchGuide},
		{"alarms", 3, 1, []string{"DeleteAlarms", "DescribeAlarmHistory", "DescribeAlarmsForMetric", "DisableAlarmActions", "EnableAlarmActions", "SetAlarmState"}, Operation, watchGuide},
	},
	"lambda": {
		{"get-function", 100, 10, []string{"GetFunction"}, "", lambdaGuide},
		{"control", 15, 2, []string{"CreateFunction", "UpdateFunctionCode", "UpdateFunctionConfiguration", "DeleteFunction", "ListFunctions", "PublishVersion", "GetFunctionConfiguration", "CreateAlias", "ListAliases", "CreateEventSourceMapping", "ListEventSourceMappings"}, "", lambdaGuide},
	},
	"ec2": {
		{"requests", 20, 100, nil, Operation, ec2Guide},
		{"changes", 5, 50, []string{"CreateTags", "CreateVolume", "DeleteVolume", "AttachVolume", "DetachVolume", "CreateSnapshot", "DeleteSnapshot", "ModifyInstanceAttribute", "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"}, Operation, ec2Guide},
		{"run-instances", 2, 5, []string{"RunInstances", "StartInstances", "StopInstances"}, Operation, ec2Guide},
	},
}

// learnt is the ceiling under which the rate of a service is learnt for which nothing is
// published.
const learnt = 10_000

// Preset is the policy of a service by the name under which its requests are signed: the
// quotas that AWS publishes, or else a rate that learns; the retries of the SDKs; a
// breaker per account and region.
func Preset(service string) weir.Policy {
	p := weir.Policy{
		Retry:   retry.Config{Base: 50 * time.Millisecond, ThrottleBase: time.Second},
		Breaker: breaker.Config{Failures: 5, Window: time.Minute},
		// The SDK has no timeouts of its own but the caller's.
		Timeouts: weir.Timeouts{Attempt: -1, Call: -1},
	}
	for _, q := range quotas[service] {
		p.Limits = append(p.Limits, limit.Limit{
			Name: q.name, Rate: bucket.Rate{Amount: q.perSecond, Per: time.Second, Burst: q.burst}, Operations: q.operations, Scope: q.scope,
		})
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
	case "dynamodb", "bedrock":
		l := limit.Limit{Name: "learnt", Rate: bucket.Rate{Amount: learnt, Per: time.Second, Burst: learnt / 10}, Scope: Operation}
		l.Adaptive.On = true
		p.Limits = append(p.Limits, l)
	}
	return p
}

// drsCodes are what calls of DRS are repeated for.
var drsCodes = []string{"ThrottlingException", "RequestLimitExceeded", "ServiceUnavailable", "InternalServerException", "ServiceQuotaExceededException"}
