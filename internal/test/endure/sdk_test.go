package endure

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/seed1158cd35/weir/awsx"
)

// Do makes a provider the HTTP client of the SDK.
func (p *provider) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	return p.RoundTrip(r)
}

func configured(p *provider) aws.Config {
	return aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""), HTTPClient: p}
}

func getItem(cfg aws.Config) client {
	c := dynamodb.NewFromConfig(cfg)
	return func(ctx context.Context) error {
		_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: map[string]types.AttributeValue{}})
		return err
	}
}

func putObject(cfg aws.Config) client {
	c := s3.NewFromConfig(cfg)
	return func(ctx context.Context) error {
		_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("p/k"), Body: bytes.NewReader([]byte("x"))})
		return err
	}
}

// The SDK's own clients, as they are and under awsx: forty calls at once of which ten a
// second are let through, a spell of two seconds, and an outage.
func TestClientsOfTheSDK(t *testing.T) {
	w := make(map[string]words)
	for _, c := range candidates() {
		w[c.name] = c.words
	}
	for _, service := range []struct {
		name string
		call func(aws.Config) client
	}{{"dynamodb", getItem}, {"s3", putObject}} {
		t.Run(service.name, func(t *testing.T) {
			played := make(map[string][]score)
			for _, f := range []fault{{name: "slow", perSecond: 10, throttled: true}, {name: "spell", to: 2 * time.Second}, {name: "outage", to: time.Hour}} {
				for _, of2026 := range []bool{false, true} {
					t.Setenv("AWS_NEW_RETRIES_2026", strconv.FormatBool(of2026))
					bare := play(t, atOnce, f, w[service.name], 3, func(p *provider, _ uint64) client { return service.call(configured(p)) })
					guarded := play(t, atOnce, f, w[service.name], 3, func(p *provider, _ uint64) client {
						cfg := configured(p)
						awsx.New(awsx.Options{}).Attach(&cfg)
						return service.call(cfg)
					})
					played[f.name] = append(played[f.name], bare, guarded)
					t.Logf("%s, 2026 %v: bare %v; under awsx %v", f.name, of2026, bare, guarded)
					if f.name == "outage" && guarded.attempts > bare.attempts {
						t.Error("more attempts in an outage")
					}
					if f.name == "slow" && guarded.good < guarded.calls || f.name == "spell" && guarded.share() < max(0.94, bare.share()) {
						t.Error("calls were lost that the fault let through")
					}
				}
			}
			// The clients that are played by their retryer alone do as the whole ones.
			if out := played["outage"]; out[0].attempts != 3*120 || out[2].attempts != 3*75 {
				t.Errorf("in an outage the SDK made %v and %v attempts, want 120 and 75 each time", out[0].attempts, out[2].attempts)
			}
		})
	}
}
