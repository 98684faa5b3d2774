package classify

import (
	"strings"

	"github.com/seed1158cd35/weir/outcome"
)

// awsCodes are the error codes of AWS services that say more than the status
// they come with, and those that callers ask for without a status.
var awsCodes = map[string]verdict{
	// The list that the Go (v2) and JavaScript (v3) SDKs share.
	"BandwidthLimitExceeded":                 throttled,
	"EC2ThrottledException":                  throttled,
	"LimitExceededException":                 throttled, // of some services a hard quota
	"PriorRequestNotComplete":                throttled,
	"ProvisionedThroughputExceededException": throttled,
	"RequestLimitExceeded":                   throttled,
	"RequestThrottled":                       throttled,
	"RequestThrottledException":              throttled,
	"SlowDown":                               throttled,
	"ThrottledException":                     throttled,
	"Throttling":                             throttled,
	"ThrottlingException":                    throttled,
	"TooManyRequestsException":               throttled,
	"TransactionInProgressException":         throttled,

	// Transient, whatever the status: S3 sends RequestTimeout with 400.
	"RequestTimeout":          failed,
	"RequestTimeoutException": failed,
	"TimeoutError":            failed,

	"InternalError":               failed,
	"InternalFailure":             failed,
	"InternalServerError":         failed,
	"InternalServerException":     failed,
	"ServiceUnavailable":          failed,
	"ServiceUnavailableException": failed,

	// Bedrock. The model, not the caller's rate, is what is missing.
	"ModelErrorException":       failed,
	"ModelNotReadyException":    {class: outcome.Failed, undone: true, shared: true},
	"ModelStreamErrorException": failed,
	"ModelTimeoutException":     failed,

	"AccessDenied":                    rejected,
	"AccessDeniedException":           rejected,
	"ConditionalCheckFailedException": rejected,
	"ConflictException":               rejected,
	"ExpiredToken":                    rejected,
	"ExpiredTokenException":           rejected,
	"InvalidSignatureException":       rejected,
	"RequestExpired":                  rejected,
	"RequestTimeTooSkewed":            rejected,
	"ResourceNotFoundException":       rejected,
	"ServiceQuotaExceededException":   rejected,
	"SignatureDoesNotMatch":           rejected,
	"UnrecognizedClientException":     rejected,
	"ValidationException":             rejected,
}

// AWSCode reports what an AWS error code means, and whether the code is one
// that decides without a status. The code may be written as it is on the wire:
// with a namespace before "#", a tail after ":", or, as in event streams, with
// a small first letter.
func AWSCode(code string) (outcome.Class, bool) {
	v, ok := awsVerdict(bareAWSCode(code))
	return v.class, ok
}

func awsVerdict(code string) (verdict, bool) {
	v, ok := awsCodes[code]
	if !ok && code != "" && code[0] >= 'a' && code[0] <= 'z' {
		v, ok = awsCodes[string(code[0]-'a'+'A')+code[1:]]
	}
	return v, ok
}

// bareAWSCode strips the namespace and the tail:
// "com.amazonaws.dynamodb.v20120810#ThrottlingException:http://..." is a
// ThrottlingException.
func bareAWSCode(s string) string {
	if _, after, ok := strings.Cut(s, "#"); ok {
		s = after
	}
	s, _, _ = strings.Cut(s, ":")
	return strings.TrimSpace(s)
}

// queryErrorCode is the code of x-amzn-query-error, "Code;Sender".
func queryErrorCode(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.TrimSpace(s)
}
