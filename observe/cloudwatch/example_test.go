package weircw_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/seed1158cd35/weir"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
)

// A Lambda function writes lines to standard output and flushes at the end of each invocation.
func Example() {
	var out bytes.Buffer
	metrics, err := weircw.New(weircw.Config{Lines: &out, Static: map[string]string{"Service": "orders"}})
	if err != nil {
		panic(err)
	}
	s3, err := weir.New("s3", weir.Policy{}, weir.Options{Events: metrics.Events()})
	if err != nil {
		panic(err)
	}
	_, _ = weir.Do(context.Background(), s3, weir.Call{}, func(context.Context) (string, error) { return "done", nil })

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := metrics.Flush(ctx); err != nil {
		fmt.Println(err)
	}
	var first map[string]any
	if err := json.NewDecoder(&out).Decode(&first); err != nil {
		panic(err)
	}
	fmt.Println(first["Service"], first["APICallCount"])
	_ = metrics.Close(ctx)
	// Output: orders 1
}

// A server publishes by the API of CloudWatch.
func ExampleClient() {
	ctx := context.Background()
	aws, err := config.LoadDefaultConfig(ctx, config.WithRegion("eu-west-1"))
	if err != nil {
		panic(err)
	}
	metrics, err := weircw.New(weircw.Config{API: weircw.Client(aws), Namespace: "Orders/Weir"})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%+v\n", metrics.Stats())
	_ = metrics.Close(ctx) // no counts, so no request
	// Output: {Published:0 Dropped:0 Waiting:0 Failures:0}
}

// Names and dimensions of metrics are configurable.
func ExampleConfig() {
	_, err := weircw.New(weircw.Config{
		Lines: io.Discard,
		Metrics: map[weircw.Metric]weircw.Naming{
			weircw.RateLimitErrors: {Name: "Throttles", Sets: []weircw.Set{{weircw.Region}, {weircw.Limit}}},
			weircw.APICallCount:    {Off: true},
		},
		Names: map[weircw.Dimension]string{weircw.Region: "AWSRegion"},
	})
	fmt.Println(err)
	// Output: cloudwatch: metric RateLimitErrors: has no dimension "Limit"; want some of [Upstream Operation Region Account ErrorCode ErrorType]
}
