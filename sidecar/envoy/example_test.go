package envoy_test

import (
	"context"
	"fmt"
	"log"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/sidecar/envoy"
)

// Clients call the server over gRPC once Serve has a listener. This example calls it directly.
func ExampleNew() {
	server, err := envoy.New(envoy.Config{Timeout: time.Second}, fleet.NewMemory(nil), envoy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	rules, err := envoy.Parse("rules.yaml", []byte(`
domain: edge
descriptors:
  - key: tenant
    rate_limit: {unit: year, requests_per_unit: 2}
`))
	if err != nil {
		log.Fatal(err)
	}
	server.Set(rules)
	request := &rls.RateLimitRequest{Domain: "edge", Descriptors: []*common.RateLimitDescriptor{
		{Entries: []*common.RateLimitDescriptor_Entry{{Key: "tenant", Value: "acme"}}},
	}}
	for range 3 {
		answer, err := server.ShouldRateLimit(context.Background(), request)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer.OverallCode, answer.Statuses[0].LimitRemaining)
	}
	// Output:
	// OK 1
	// OK 0
	// OVER_LIMIT 0
}

func ExampleParse() {
	_, err := envoy.Parse("rules.yaml", []byte("domain: edge\ndescriptors:\n  - key: tenant\n    rate_limit: {unit: moon}\n"))
	fmt.Println(err)
	// Output:
	// rules.yaml:4:17: descriptors[0].rate_limit: unknown unit "moon"; want second, minute, hour, day, week, month or year
}
