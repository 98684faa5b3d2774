package drs_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

func config(url string) aws.Config {
	return aws.Config{Region: "eu-west-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}
}

// listening runs a server on a TCP port.
func listening(t *testing.T, h http.Handler) aws.Config {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return config(s.URL)
}

// inside runs a server inside a synctest bubble. Call close before the bubble ends.
func inside(h http.Handler) (cfg aws.Config, close func()) {
	n := memnet.New()
	cfg = config(n.Serve("drs.test", h))
	cfg.HTTPClient = &http.Client{Transport: n.Transport()}
	return cfg, n.Close
}

// recovering returns the input for a recovery of servers.
func recovering(ids ...string) *sdk.StartRecoveryInput {
	in := new(sdk.StartRecoveryInput)
	for _, id := range ids {
		in.SourceServers = append(in.SourceServers, types.StartRecoveryRequestSourceServer{SourceServerID: &id})
	}
	return in
}

const oneServer = "s-00000000000000001"
