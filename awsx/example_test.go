package awsx_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func Example() {
	cfg := aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""), HTTPClient: echo{}}

	guard := awsx.New(awsx.Options{
		Account: "123456789012",
		Policy: func(t awsx.Target) weir.Policy {
			p := awsx.Preset(t.Service)
			p.MaxWait = -1 // refuse immediately
			p.Limits = append(p.Limits, limit.Limit{Name: "mine", Scope: awsx.Operation, Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}})
			return p
		},
	})
	guard.Attach(&cfg)
	client := dynamodb.NewFromConfig(cfg) // as always

	for range 2 {
		_, err := client.ListTables(context.Background(), nil)
		if refusal, ok := errors.AsType[*weir.Refusal](err); ok {
			fmt.Println(refusal.Upstream, refusal.Operation, refusal.Reason, refusal.Limit)
			continue
		}
		fmt.Println("listed", err)
	}
	// Output:
	// listed <nil>
	// aws/dynamodb/eu-west-1/123456789012 ListTables rate_limited mine
}

// Separate limits for the buckets of a program, for each Lambda function and for each SQS queue: the limit's scope selects what
// counts separately.
func ExamplePreset() {
	perSecond := func(name, scope string, n int64) limit.Limit {
		return limit.Limit{Name: name, Scope: scope, Rate: bucket.Rate{Amount: n, Per: time.Second, Burst: n}}
	}
	own := map[string][]limit.Limit{
		"s3": {
			perSecond("bucket", awsx.Bucket, 1000),
			perSecond("reads and writes", awsx.Access, 4000),
			perSecond("prefix", awsx.Prefix, 300),
			perSecond("same object", awsx.Key, 1), // S3 only guarantees one write a second
		},
		"dynamodb": {perSecond("table", awsx.Table, 500)},
		"bedrock":  {perSecond("model", awsx.Model, 2)},
		"lambda":   {perSecond("function", awsx.Function, 10)},
		"sqs":      {perSecond("queue", awsx.Queue, 300)},
	}
	p := awsx.Preset("sqs")
	p.Limits = append(p.Limits, own["sqs"]...)
	fmt.Println(p.Limits[len(p.Limits)-1].Name, p.Validate())
	// Output: queue <nil>
}

func ExampleShards() {
	s, _ := awsx.NewShards(16)
	kept := s.Key("logs/2026/11/21.gz")
	key, ok := s.Original(kept)
	fmt.Println(kept, key, ok)
	// Output: 7/logs/2026/11/21.gz logs/2026/11/21.gz true
}

func ExampleGuard_Assume() {
	guard := awsx.New(awsx.Options{})
	_, err := guard.Assume(aws.Config{Region: "eu-west-1"}, awsx.Role{Name: "reader", Account: "1234"})
	fmt.Println(err)
	// Output: awsx: role: account "1234": want twelve digits
}
