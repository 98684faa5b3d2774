package classify_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/outcome/classify"
)

func ExampleHTTP() {
	o := classify.HTTP(classify.Response{
		Method: http.MethodPost,
		Status: 400, // DynamoDB throttles with 400
		Body:   []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`),
	})
	fmt.Println(o.Class, o.Code, o.Undone)
	// Output: throttled ProvisionedThroughputExceededException true
}

func ExampleHTTP_retryAfter() {
	o := classify.HTTP(classify.Response{
		Status: http.StatusServiceUnavailable,
		Header: http.Header{
			"Date":        {"Fri, 20 Nov 2026 09:00:00 GMT"},
			"Retry-After": {"Fri, 20 Nov 2026 09:00:30 GMT"},
		},
		Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), // the clocks differ by hours
	})
	fmt.Println(o.Class, o.Hint.After)
	// Output: throttled 30s
}

func ExampleNeedsBody() {
	xml := http.Header{"Content-Type": {"application/xml"}}
	fmt.Println(classify.NeedsBody("GET", 200, xml))  // an object
	fmt.Println(classify.NeedsBody("POST", 200, xml)) // the end of a multipart upload
	fmt.Println(classify.NeedsBody("GET", 503, xml))
	// Output:
	// false
	// true
	// true
}

func ExampleError() {
	ctx, cancel := context.WithCancel(context.Background())
	err := fmt.Errorf("attempt: %w", context.DeadlineExceeded)
	fmt.Println(classify.Error(ctx, err).Class)
	cancel()
	fmt.Println(classify.Error(ctx, err).Class)
	// Output:
	// failed
	// canceled
}

func ExampleAWSCode() {
	fmt.Println(classify.AWSCode("RequestLimitExceeded"))
	fmt.Println(classify.AWSCode("Novel"))
	// Output:
	// throttled true
	// unknown false
}

func ExampleRules() {
	r := classify.Rules{Failed: []string{"404"}} // eventually consistent
	fmt.Println(r.HTTP(classify.Response{Status: 404}).Class)
	fmt.Println(r.Error(context.Background(), errors.New("boom")).Class)
	// Output:
	// failed
	// unknown
}

func ExampleRules_Validate() {
	fmt.Println(classify.Rules{Throttled: []string{"42"}, Failed: []string{""}}.Validate())
	// Output:
	// throttled[0] "42": a status must be from 200 to 599
	// failed[0] "": must be a status or a code, with no space around it
}

func ExampleRules_Apply() {
	o := classify.HTTP(classify.Response{Status: 429})
	fmt.Println(classify.Rules{Rejected: []string{"429"}}.Apply(o, 429).Class)
	// Output: rejected
}
