package awsx_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
)

// The account of a call comes from the options, then from the credentials, then from a name that distinguishes keys without
// revealing them.
func TestAccounts(t *testing.T) {
	told := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "s", AccountID: "210987654321"}, nil
	})
	for _, c := range []struct {
		credentials aws.CredentialsProvider
		account     string
		want        string
	}{
		{told, "123456789012", "123456789012"},
		{told, "", "210987654321"},
		{credentials.NewStaticCredentialsProvider("AKID", "s", ""), "", "key-"},
		{aws.AnonymousCredentials{}, "", "anonymous"},
		{nil, "", "anonymous"},
	} {
		cfg := config("http://localhost:1")
		cfg.HTTPClient, cfg.Credentials = echo{}, c.credentials
		g := awsx.New(awsx.Options{Account: c.account, Policy: plainPolicy})
		g.Attach(&cfg)
		_, _ = dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil)
		all := g.Targets()
		if len(all) != 1 || !strings.HasPrefix(all[0].Account, c.want) || strings.Contains(all[0].Account, "AKID") {
			t.Errorf("%+v, want %s", all, c.want)
		}
	}
}

// Concurrent first calls create an upstream once.
func TestUpstreamsAreMadeOnce(t *testing.T) {
	var made atomic.Int64
	g := awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy {
		made.Add(1)
		return brisk(weir.Policy{})
	}})
	cfg := config("http://localhost:1")
	cfg.HTTPClient = echo{}
	g.Attach(&cfg)
	c := dynamodb.NewFromConfig(cfg)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := c.ListTables(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 || len(g.Targets()) != 1 {
		t.Errorf("made %d times: %v", made.Load(), g.Targets())
	}
}
