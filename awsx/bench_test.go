package awsx_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

type echo struct{}

func (echo) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"TableNames":[]}`))}, nil
}

func echoing(guard func(*aws.Config)) *dynamodb.Client {
	cfg := config("http://localhost:1")
	cfg.HTTPClient = echo{}
	if guard != nil {
		guard(&cfg)
	}
	return dynamodb.NewFromConfig(cfg)
}

// wide is a policy with a limit that is never reached.
func wide(t awsx.Target) weir.Policy {
	p := awsx.Preset(t.Service)
	p.Limits = []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1e9, Per: time.Second}}}
	return p
}

// preset is the default policy, with higher rates.
func preset(t awsx.Target) weir.Policy {
	p := awsx.Preset(t.Service)
	for i := range p.Limits {
		p.Limits[i].Rate = bucket.Rate{Amount: 1e9, Per: time.Second}
	}
	return p
}

func get(ctx context.Context, c *dynamodb.Client) error {
	_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: map[string]ddb.AttributeValue{}})
	return err
}

func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name   string
		client *dynamodb.Client
	}{
		{"bare", echoing(nil)},
		{"guarded", echoing(awsx.New(awsx.Options{Policy: wide}).Attach)},
		{"preset", echoing(awsx.New(awsx.Options{Policy: preset}).Attach)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := get(b.Context(), c.client); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOverhead alternates bare and guarded calls, so that other load affects both equally, and reports the difference of
// their medians.
func BenchmarkOverhead(b *testing.B) {
	for _, p := range []struct {
		name   string
		policy func(awsx.Target) weir.Policy
	}{{"one limit", wide}, {"preset", preset}} {
		b.Run(p.name, func(b *testing.B) {
			clients := [2]*dynamodb.Client{echoing(nil), echoing(awsx.New(awsx.Options{Policy: p.policy}).Attach)}
			var took [2][]time.Duration
			for b.Loop() {
				for i, c := range clients {
					begin := time.Now()
					if err := get(b.Context(), c); err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(begin))
				}
			}
			b.ReportMetric(float64(median(took[1])-median(took[0])), "ns-over/op")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
