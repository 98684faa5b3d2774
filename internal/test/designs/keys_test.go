package designs

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
	"github.com/seed1158cd35/weir/observe/logs"
	"github.com/seed1158cd35/weir/retry"
)

type idKey struct{}

// Every call's log lines and CloudWatch dimensions have account, region, operation and correlation ID, whatever the limits'
// scopes are.
func TestEveryCallSaysWhereItIsAndWhichItIs(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"too much"}`)
	}))
	defer service.Close()
	for _, scope := range []string{"", awsx.Table, awsx.Region} {
		var log, lines bytes.Buffer
		cw, err := weircw.New(weircw.Config{Lines: &lines, Metrics: map[weircw.Metric]weircw.Naming{
			weircw.APICallCount: {Sets: []weircw.Set{{weircw.Region, weircw.Account, weircw.Operation}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		sent := ""
		g := awsx.New(awsx.Options{
			Account: "123456789012",
			ID:      func(ctx context.Context) string { id, _ := ctx.Value(idKey{}).(string); return id },
			Policy: func(awsx.Target) weir.Policy {
				return weir.Policy{
					Limits: []limit.Limit{{Name: "l", Scope: scope, Rate: bucket.Rate{Amount: 1e9, Per: time.Second}}},
					Retry:  retry.Config{Base: time.Millisecond, Cap: time.Millisecond},
				}
			},
			Upstream: weir.Options{Events: weir.Tee(cw.Events(), logs.Events(slog.New(slog.NewJSONHandler(&log, nil))))},
		})
		cfg := aws.Config{
			Region: "eu-west-1", BaseEndpoint: &service.URL, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
			HTTPClient: asked{func(r *http.Request) { sent = r.Header.Get("Amz-Sdk-Invocation-Id") }},
		}
		g.Attach(&cfg)
		c := dynamodb.NewFromConfig(cfg)
		_, _ = c.DescribeTable(context.WithValue(t.Context(), idKey{}, "order-17"), &dynamodb.DescribeTableInput{TableName: aws.String("t")})
		_, _ = c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("t")})
		ids := make(map[string]int)
		for line := range strings.Lines(log.String()) {
			var l map[string]any
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			if l["region"] != "eu-west-1" || l["account"] != "123456789012" || l["operation"] != "DescribeTable" {
				t.Errorf("scope %q: %s", scope, line)
			}
			ids[l["id"].(string)]++
		}
		if len(ids) != 2 || ids["order-17"] == 0 || ids[sent] == 0 || sent == "" {
			t.Errorf("scope %q: lines by id %v, want some of order-17 and of %s", scope, ids, sent)
		}
		if err := cw.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(lines.String(), `"Region":"eu-west-1","Account":"123456789012","Operation":"DescribeTable"`) || strings.Contains(lines.String(), `"none"`) {
			t.Errorf("scope %q: %s", scope, lines.String())
		}
	}
}

// asked passes each request to see.
type asked struct{ see func(*http.Request) }

func (a asked) Do(r *http.Request) (*http.Response, error) {
	a.see(r)
	return http.DefaultClient.Do(r)
}
