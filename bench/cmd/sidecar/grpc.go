package main

import (
	"context"
	"fmt"
	"net"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// rules configure Envoy's rate limit service with limits that are never reached.
const rules = "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: hour, requests_per_unit: 4294967295}}\n"

// undecided is a bare service of the same library: it permits every request without a decision.
func undecided(l net.Listener) error {
	s := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(s, yes{said: &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK, Statuses: []*rls.RateLimitResponse_DescriptorStatus{{
		Code:           rls.RateLimitResponse_OK,
		CurrentLimit:   &rls.RateLimitResponse_RateLimit{RequestsPerUnit: 4294967295, Unit: rls.RateLimitResponse_RateLimit_HOUR},
		LimitRemaining: 4294967294,
	}}}})
	return s.Serve(l)
}

type yes struct {
	rls.UnimplementedRateLimitServiceServer
	said *rls.RateLimitResponse
}

func (y yes) ShouldRateLimit(context.Context, *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	return y.said, nil
}

// envoy calls as Envoy does, with one connection for all callers.
func envoy(address string) (story, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	service := rls.NewRateLimitServiceClient(conn)
	request := &rls.RateLimitRequest{Domain: "d", HitsAddend: 1, Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "a", Value: "1"}}}}}
	return func(*client) error {
		r, err := service.ShouldRateLimit(context.Background(), request)
		if err == nil && r.OverallCode != rls.RateLimitResponse_OK {
			err = fmt.Errorf("the answer is %v", r.OverallCode)
		}
		return err
	}, nil
}
