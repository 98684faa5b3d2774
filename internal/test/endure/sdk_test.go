package endure

import (
	"bytes"
	"context"
	"net/http"
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

// The SDK's clients, without and with awsx: forty simultaneous calls at ten allowed a second, a fault of two seconds, and an
// outage.
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
				bare := play(t, atOnce, f, w[service.name], 3, func(p *provider, _ uint64) client { return service.call(configured(p)) })
				guarded := play(t, atOnce, f, w[service.name], 3, func(p *provider, _ uint64) client {
					cfg := configured(p)
					awsx.New(awsx.Options{}).Attach(&cfg)
					return service.call(cfg)
				})
				model := play(t, atOnce, f, w[service.name], 3, ofAWS(service.name == "dynamodb")[1].make)
				before := play(t, atOnce, f, w[service.name], 3, sdkBefore148)
				played[f.name] = []score{bare, model, before}
				t.Logf("%s: bare %v; under awsx %v; models of it %v, before 1.48 %v", f.name, bare, guarded, model, before)
				if f.name == "outage" && guarded.attempts > bare.attempts {
					t.Error("more attempts in an outage")
				}
				if f.name == "slow" && guarded.good < guarded.calls || f.name == "spell" && guarded.share() < max(0.94, bare.share()) {
					t.Error("calls were lost that the fault let through")
				}
			}
			// 500 tokens pay for 35 retries of 40 calls. Before 1.48 they paid for 100, and a call made two.
			for i, want := range []float64{75, 75, 120} {
				if got := played["outage"][i].attempts / 3; got != want {
					t.Errorf("in an outage client %d made %v attempts, want %v", i, got, want)
				}
			}
		})
	}
}
