package drs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"

	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/internal/test/drstest"
)

// The response to the first request is lost, and its job is found.
func ExampleClient_StartRecovery() {
	server := &drstest.Server{Fault: first("StartRecovery", drstest.LostAfter)}
	s := httptest.NewServer(server)
	defer s.Close()

	client := drs.New(config(s.URL), drs.Options{})
	out, err := client.StartRecovery(context.Background(), &sdk.StartRecoveryInput{
		SourceServers: []types.StartRecoveryRequestSourceServer{{SourceServerID: aws.String("s-1234567890abcdef0")}},
	})
	if lost, ok := errors.AsType[*drs.UnknownError](err); ok {
		fmt.Println("look for", lost.Tag)
		return
	}
	fmt.Println(err, out.Job.Status, server.Recoveries(), "recovery")
	// Output: <nil> STARTED 1 recovery
}

func ExampleActiveJobs() {
	s := httptest.NewServer(&drstest.Server{})
	defer s.Close()

	active := drs.ActiveJobs(drs.New(config(s.URL), drs.Options{}))
	ids, err := active(context.Background())
	fmt.Println(len(ids), err)
	// Output: 0 <nil>
}
