package classify

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

func TestAWSErrors(t *testing.T) {
	const s3 = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message><RequestId>1</RequestId></Error>`
	const json = "Content-Type: application/x-amz-json-1.0"
	run(t, []answer{
		{name: "DynamoDB throttles with 400", status: 400, header: headers(json), body: `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"The level of configured provisioned throughput for the table was exceeded."}`, want: throttle("ProvisionedThroughputExceededException")},
		{name: "DynamoDB condition", status: 400, body: `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","Message":"m"}`, want: reject("ConditionalCheckFailedException")},
		{name: "header with a tail", status: 400, header: headers("x-amzn-ErrorType: ThrottlingException:http://internal.amazon.com/coral/com.amazon.coral.availability/"), want: throttle("ThrottlingException")},
		{name: "header beats body", status: 400, header: headers("x-amzn-ErrorType: ValidationException"), body: `{"__type":"ThrottlingException"}`, want: reject("ValidationException")},
		{name: "code in the body", status: 400, body: `{"code":"aws.x#TooManyRequestsException:tail","message":"m"}`, want: throttle("TooManyRequestsException")},
		{name: "query error header", status: 400, header: headers("x-amzn-query-error: RequestThrottled;Sender"), body: `{"__type":"com.amazonaws.sqs#SomethingElse"}`, want: throttle("RequestThrottled")},
		{name: "S3", status: 503, body: s3, want: throttle("SlowDown")},
		{name: "S3 with the root after white space", status: 503, body: "\n\n  " + s3, want: throttle("SlowDown")},
		{name: "S3 cut short", status: 503, body: s3[:75], want: throttle("SlowDown")},
		{name: "S3 in another charset", status: 503, body: `<?xml version="1.0" encoding="ISO-8859-1"?><Error><Code>SlowDown</Code></Error>`, want: throttle("SlowDown")},
		{name: "S3 waits for a body with 400", status: 400, body: `<Error><Code>RequestTimeout</Code></Error>`, want: fails("RequestTimeout")},
		{name: "S3 outage", status: 503, body: `<Error><Code>ServiceUnavailable</Code></Error>`, want: fails("ServiceUnavailable")},
		{name: "MinIO", status: 503, header: headers("Retry-After: 120"), body: s3, want: after(throttle("SlowDown"), 2*time.Minute)},
		{name: "awsQuery", status: 400, body: `<ErrorResponse xmlns="http://x/"><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error><RequestId>1</RequestId></ErrorResponse>`, want: throttle("Throttling")},
		{name: "EC2", status: 503, body: `<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>m</Message></Error></Errors></Response>`, want: throttle("RequestLimitExceeded")},
		{name: "a Code elsewhere is none", status: 400, body: `<Error><Detail><Code>SlowDown</Code></Detail></Error>`, want: reject("400")},
		{name: "HEAD has no body", method: "HEAD", status: 400, body: s3, want: reject("400")},
		{name: "the SDKs' own hint", status: 500, header: headers("x-amz-retry-after: 1500", "Retry-After: 9"), want: after(fails("500"), 1500*time.Millisecond)},
		{name: "DRS", status: 429, header: headers("x-amzn-ErrorType: ThrottlingException", "Retry-After: 2"), body: `{"message":"Rate exceeded"}`, want: after(throttle("ThrottlingException"), 2*time.Second)},
		{name: "DRS conflict", status: 409, header: headers("x-amzn-ErrorType: ConflictException"), want: reject("ConflictException")},
		{name: "expired token", status: 400, body: `{"__type":"ExpiredTokenException"}`, want: reject("ExpiredTokenException")},

		{name: "Bedrock minute", status: 429, header: headers("x-amzn-ErrorType: ThrottlingException"), body: `{"message":"Too many tokens, please wait before trying again."}`, want: throttle("ThrottlingException")},
		{name: "Bedrock day", status: 429, header: headers("x-amzn-ErrorType: ThrottlingException"), body: `{"message":"Too many tokens per day, please wait before trying again."}`, want: quota(throttle("ThrottlingException"))},
		{name: "429 with the code of a failure", status: 429, header: headers("x-amzn-ErrorType: InternalServerException"), want: throttle("InternalServerException")},
		{name: "429 with an unknown code", status: 429, header: headers("x-amzn-ErrorType: SomeServiceException"), want: throttle("SomeServiceException")},
		{name: "security token without a code", status: 403, body: `{"message":"The security token included in the request is expired"}`, want: reject("ExpiredTokenException")},
		{name: "Bedrock cold model", status: 429, header: headers("x-amzn-ErrorType: ModelNotReadyException"), want: undone(fails("ModelNotReadyException"))},
		{name: "Bedrock model timeout", status: 408, header: headers("x-amzn-ErrorType: ModelTimeoutException"), want: fails("ModelTimeoutException")},
		{name: "Bedrock model error", status: 424, header: headers("x-amzn-ErrorType: ModelErrorException"), want: fails("ModelErrorException")},
		{name: "Bedrock quota of the account", status: 400, header: headers("x-amzn-ErrorType: ServiceQuotaExceededException"), want: reject("ServiceQuotaExceededException")},
	})
}

func TestErrorInsideSuccess(t *testing.T) {
	const internal = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>InternalError</Code><Message>We encountered an internal error. Please try again.</Message></Error>"
	run(t, []answer{
		{name: "CompleteMultipartUpload", status: 200, body: internal, want: fails("InternalError")},
		{name: "CopyObject", method: "PUT", status: 200, body: "   \n " + internal, want: fails("InternalError")},
		{name: "throttled", method: "PUT", status: 200, body: `<Error><Code>SlowDown</Code></Error>`, want: throttle("SlowDown")},
		{name: "of unknown kind", status: 200, body: `<Error><Code>Novel</Code></Error>`, want: fails("Novel")},
		{name: "cut before the code", status: 200, body: `<Error><Co`, want: fails("InternalError")},
		{name: "denied", status: 200, body: `<Error><Code>AccessDenied</Code></Error>`, want: reject("AccessDenied")},
		{name: "a result", status: 200, body: `<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>`, want: ok()},
		{name: "errors of single keys are a result", status: 200, body: `<DeleteResult><Error><Key>k</Key><Code>InternalError</Code></Error></DeleteResult>`, want: ok()},
		{name: "an object that looks like an error", method: "GET", status: 200, body: internal, want: ok()},
		{name: "white space so far", status: 200, body: "  \n ", want: ok()},
	})
}

func TestAWSCode(t *testing.T) {
	tests := []struct {
		code string
		want outcome.Class
		ok   bool
	}{
		{"SlowDown", outcome.Throttled, true},
		{"com.amazonaws.x#ThrottlingException:http://y", outcome.Throttled, true},
		{"throttlingException", outcome.Throttled, true}, // event streams
		{"LimitExceededException", outcome.Throttled, true},
		{"RequestTimeout", outcome.Failed, true},
		{"ValidationException", outcome.Rejected, true},
		{"rate_limit_exceeded", outcome.Unknown, false},
		{"", outcome.Unknown, false},
	}
	for _, tt := range tests {
		if got, ok := AWSCode(tt.code); got != tt.want || ok != tt.ok {
			t.Errorf("AWSCode(%q) = %v, %v, want %v, %v", tt.code, got, ok, tt.want, tt.ok)
		}
	}
}
