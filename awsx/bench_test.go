package awsx_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
)

// echo is a service that answers at once.
type echo struct{}

func (echo) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"TableNames":[]}`))}, nil
}

func BenchmarkCall(b *testing.B) {
	for _, guarded := range []bool{false, true} {
		cfg := config("http://localhost:1")
		cfg.HTTPClient = echo{}
		name := "bare"
		if guarded {
			name = "guarded"
			awsx.New(awsx.Options{Policy: func(t awsx.Target) weir.Policy {
				p := awsx.Preset(t.Service)
				p.Limits = []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1e9, Per: time.Second}}}
				return p
			}}).Attach(&cfg)
		}
		c := dynamodb.NewFromConfig(cfg)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.ListTables(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
