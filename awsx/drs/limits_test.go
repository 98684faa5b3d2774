package drs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// holder returns credentials with an account.
func holder(account, key string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: key, SecretAccessKey: "secret", AccountID: account, Source: "holder of " + key}, nil
	})
}

// sourced returns credentials with a source and no account.
func sourced(source, key string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: key, SecretAccessKey: "secret", Source: source}, nil
	})
}

// Forty calls of two clients of one account and region take 2 s with a shared limit of 10/s and a burst of 20, and no time with
// separate limits.
func TestClientsOfOneAccountAndRegionShareOneLimit(t *testing.T) {
	const account = "123456789012"
	static := func(key string) aws.CredentialsProvider {
		return credentials.NewStaticCredentialsProvider(key, "secret", "")
	}
	type client struct {
		c      aws.CredentialsProvider
		o      drs.Options
		region string
	}
	for name, c := range map[string]struct {
		a, b   client
		shared bool
	}{
		"twins":                      {client{c: holder(account, "AK1")}, client{c: holder(account, "AK1")}, true},
		"rotated key":                {client{c: holder(account, "AK1")}, client{c: holder(account, "AK2")}, true},
		"account option":             {client{c: static("AK1"), o: drs.Options{Account: account}}, client{c: static("AK2"), o: drs.Options{Account: account}}, true},
		"option and credentials":     {client{c: static("AK1"), o: drs.Options{Account: account}}, client{c: holder(account, "AK2")}, true},
		"other options":              {client{c: holder(account, "AK1"), o: drs.Options{Attempts: 2, Timeout: time.Second}}, client{c: holder(account, "AK1"), o: drs.Options{Events: weir.Events{Refused: func(weir.Refused) time.Duration { return 0 }}}}, true},
		"unknown, static":            {client{c: static("AK1")}, client{c: static("AK1")}, true},
		"unknown, static, rotated":   {client{c: static("AK1")}, client{c: static("AK2")}, true},
		"unknown, provider, rotated": {client{c: sourced("EC2RoleProvider", "AK1")}, client{c: sourced("EC2RoleProvider", "AK2")}, true},
		"unknown, cached":            {client{c: aws.NewCredentialsCache(sourced("ProcessProvider", "AK1"))}, client{c: sourced("ProcessProvider", "AK2")}, true},
		"unknown, no source":         {client{c: sourced("", "AK1")}, client{c: sourced("", "AK2")}, true},
		"unknown, other source":      {client{c: sourced("ProcessProvider", "AK1")}, client{c: sourced("EC2RoleProvider", "AK1")}, false},
		"other account":              {client{c: holder(account, "AK1")}, client{c: holder("210987654321", "AK2")}, false},
		"other region":               {client{c: holder(account, "AK1")}, client{c: holder(account, "AK1"), region: "us-east-1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := drstest.AWS()
				cfg, end := inside(server)
				defer end()
				server.Accounts = map[string]string{"AK1": account, "AK2": account}
				if !c.shared {
					server.Rate = 0
				}
				var clients []*drs.Client
				for _, one := range []client{c.a, c.b} {
					own := cfg.Copy()
					if own.Credentials = one.c; one.region != "" {
						own.Region = one.region
					}
					clients = append(clients, drs.New(own, one.o))
				}
				want := map[bool]time.Duration{true: 2 * time.Second, false: 0}[c.shared]
				if took, bad := work(t, 40, 40, clients...); took != want || bad > 0 || server.Throttled() > 0 {
					t.Errorf("40 calls took %v, want %v; %d failed, %d throttled", took, want, bad, server.Throttled())
				}
			})
		})
	}
}

// Rotated keys and short-lived clients do not begin with full limits.
func TestLimitSurvivesRotationAndShortLivedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		server.Rate = 0
		cfg, end := inside(server)
		defer end()
		n := 0
		cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			n++
			return aws.Credentials{AccessKeyID: "AK" + string(rune('0'+n%10)), SecretAccessKey: "secret"}, nil
		})
		began := time.Now()
		for range 50 {
			if _, err := drs.New(cfg, drs.Options{}).DescribeJobs(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("50 calls took %v, want 3s", took)
		}
	})
}

// Of different rates for one account, the lowest applies to all of its clients.
func TestLowestRateOfClientsApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		server.Rate = 0
		cfg, end := inside(server)
		defer end()
		slow := drs.New(cfg, drs.Options{Rate: bucket.Rate{Amount: 5, Per: time.Second, Burst: 10}})
		if took, _ := work(t, 1, 1, slow); took != 0 {
			t.Fatal(took)
		}
		time.Sleep(time.Minute)
		if took, bad := work(t, 20, 20, drs.New(cfg, drs.Options{}), slow); took != 2*time.Second || bad > 0 {
			t.Errorf("20 calls took %v, want 2s", took)
		}
	})
}
