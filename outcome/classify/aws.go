package classify

import (
	"strings"

	"github.com/seed1158cd35/weir/outcome"
)

// awsCodes are the AWS error codes that are more specific than their status, and codes that AWSCode must know without a status.
var awsCodes = map[string]verdict{
	// The list that the Go (v2) and JavaScript (v3) SDKs share.
	"BandwidthLimitExceeded":                 throttled,
	"EC2ThrottledException":                  throttled,
	"LimitExceededException":                 throttled, // a hard quota in some services
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

	// Transient with any status: S3 sends RequestTimeout with 400.
	"RequestTimeout":          failed,
	"RequestTimeoutException": failed,
	"TimeoutError":            failed,

	"InternalError":               failed,
	"InternalFailure":             failed,
	"InternalServerError":         failed,
	"InternalServerException":     failed,
	"ServiceUnavailable":          failed,
	"ServiceUnavailableException": failed,

	// Bedrock. The model is unavailable. The caller's rate is not the cause.
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

// AWSCode returns the class of an AWS error code. ok is false if the code alone does not determine the class. The code may be in
// its wire form: with a namespace before "#", text after ":", or, as in event streams, with a lower-case first letter.
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

// bareAWSCode removes the namespace and the text after the code:
// "com.amazonaws.dynamodb.v20120810#ThrottlingException:http://..." becomes ThrottlingException.
func bareAWSCode(s string) string {
	if _, after, ok := strings.Cut(s, "#"); ok {
		s = after
	}
	s, _, _ = strings.Cut(s, ":")
	return strings.TrimSpace(s)
}

// queryErrorCode returns the code in x-amzn-query-error, "Code;Sender".
func queryErrorCode(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.TrimSpace(s)
}

// awsMessages are the beginnings of messages about refused signatures, and their codes. API Gateway and OpenSearch send them
// without a code.
var awsMessages = [...]struct{ begin, code string }{
	{"The security token included in the request is expired", "ExpiredTokenException"},
	{"The security token included in the request is invalid", "UnrecognizedClientException"},
	{"Signature expired", "InvalidSignatureException"},
	{"Signature not yet current", "InvalidSignatureException"},
	{"The request signature we calculated does not match", "InvalidSignatureException"},
}

// addAWSMessage adds the code of an AWS message to an error without a code.
func (d *detail) addAWSMessage() {
	for _, m := range awsMessages {
		if len(d.codes) == 0 && strings.HasPrefix(d.message, m.begin) {
			d.add(m.code)
		}
	}
}
