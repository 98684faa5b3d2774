package awsx_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/drs"
	drstypes "github.com/aws/aws-sdk-go-v2/service/drs/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

type calls = map[string]func(context.Context, aws.Config) error

var s = aws.String

var reading = calls{
	"s3.GetObject": func(ctx context.Context, c aws.Config) error {
		_, err := s3.NewFromConfig(c, pathStyle).GetObject(ctx, &s3.GetObjectInput{Bucket: s("b"), Key: s("k")})
		return err
	},
	"dynamodb.PutItem": func(ctx context.Context, c aws.Config) error {
		_, err := dynamodb.NewFromConfig(c).PutItem(ctx, &dynamodb.PutItemInput{TableName: s("t"), Item: map[string]ddb.AttributeValue{}})
		return err
	},
	"drs.DescribeJobs": func(ctx context.Context, c aws.Config) error {
		_, err := drs.NewFromConfig(c).DescribeJobs(ctx, nil)
		return err
	},
	"sqs.ReceiveMessage": func(ctx context.Context, c aws.Config) error {
		_, err := sqs.NewFromConfig(c).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: s("http://q/1/q")})
		return err
	},
	"bedrock.InvokeModel": func(ctx context.Context, c aws.Config) error {
		_, err := bedrockruntime.NewFromConfig(c).InvokeModel(ctx, &bedrockruntime.InvokeModelInput{ModelId: s("m"), Body: []byte("{}")})
		return err
	},
	"lambda.GetFunction": func(ctx context.Context, c aws.Config) error {
		_, err := lambda.NewFromConfig(c).GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: s("f")})
		return err
	},
}

// doing are calls that must not be made twice.
var doing = calls{
	"drs.StartRecovery": func(ctx context.Context, c aws.Config) error {
		_, err := drs.NewFromConfig(c).StartRecovery(ctx, &drs.StartRecoveryInput{SourceServers: []drstypes.StartRecoveryRequestSourceServer{{SourceServerID: s("s-12345678901234567")}}})
		return err
	},
	"sqs.SendMessage": func(ctx context.Context, c aws.Config) error {
		_, err := sqs.NewFromConfig(c).SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: s("http://q/1/q"), MessageBody: s("m")})
		return err
	},
	"sns.Publish": func(ctx context.Context, c aws.Config) error {
		_, err := sns.NewFromConfig(c).Publish(ctx, &sns.PublishInput{TopicArn: s("t"), Message: s("m")})
		return err
	},
	"lambda.Invoke": func(ctx context.Context, c aws.Config) error {
		_, err := lambda.NewFromConfig(c).Invoke(ctx, &lambda.InvokeInput{FunctionName: s("f")})
		return err
	},
	"dynamodb.UpdateItem": func(ctx context.Context, c aws.Config) error {
		_, err := dynamodb.NewFromConfig(c).UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: s("t"), Key: map[string]ddb.AttributeValue{}})
		return err
	},
	"s3.CreateMultipartUpload": func(ctx context.Context, c aws.Config) error {
		_, err := s3.NewFromConfig(c, pathStyle).CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: s("b"), Key: s("k")})
		return err
	},
}

// throttle responds as each service does when it throttles.
func throttle(w http.ResponseWriter, service string) {
	status, code := 400, "ThrottlingException"
	switch service {
	case "s3":
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(503)
		_, _ = io.WriteString(w, `<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
		return
	case "sns":
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code></Error></ErrorResponse>`)
		return
	case "drs", "bedrock":
		status = 429
	case "lambda":
		status, code = 429, "TooManyRequestsException"
	case "sqs":
		status, code = 403, "RequestThrottled"
	case "dynamodb":
		code = "ProvisionedThroughputExceededException"
	}
	w.Header().Set("X-Amzn-Errortype", code)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"__type":"com.amazonaws#`+code+`"}`)
}

// All throttled requests are repeated, because they had no effect. Failed requests are repeated where that does no harm. The
// policy bounds the attempts.
func TestServicesAreAskedAgain(t *testing.T) {
	for _, c := range []struct {
		what  string
		calls calls
		fails func(http.ResponseWriter, string)
		want  int64
	}{
		{"a throttled read", reading, throttle, 3},
		{"a throttled doing", doing, throttle, 3},
		{"a read throttled with a bare 429", reading, func(w http.ResponseWriter, _ string) { w.WriteHeader(429) }, 3},
		{"a doing throttled with a bare 429", doing, func(w http.ResponseWriter, _ string) { w.WriteHeader(429) }, 3},
		{"a doing throttled with a 429 of another code", doing, func(w http.ResponseWriter, _ string) {
			w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			w.WriteHeader(429)
		}, 3},
		{"a broken read", reading, func(w http.ResponseWriter, _ string) { w.WriteHeader(500) }, 3},
		{"a broken doing", doing, func(w http.ResponseWriter, _ string) { w.WriteHeader(500) }, 1},
		{"a lost read", reading, func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }, 3},
		{"a lost doing", doing, func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }, 1},
	} {
		for name, call := range c.calls {
			service, _, _ := strings.Cut(name, ".")
			var n atomic.Int64
			far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				c.fails(w, service)
			}))
			cfg := config(far.URL)
			var class string
			g := awsx.New(awsx.Options{Policy: plainPolicy, Upstream: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { class = e.Outcome.Class.String() }}}})
			g.Attach(&cfg)
			err := call(t.Context(), cfg)
			if err == nil || n.Load() != c.want || strings.Contains(c.what, "throttled") != (class == "throttled") {
				t.Errorf("%s of %s: %d sent, want %d; %s: %v", c.what, name, n.Load(), c.want, class, err)
			}
			if all := g.Targets(); len(all) != 1 || all[0].Service != service {
				t.Errorf("%s is one of %+v", name, all)
			}
			far.Close()
		}
	}
}

// polled records which calls are long polls.
type polled struct{ calls map[string]bool }

func (p *polled) Admit(_ context.Context, c weir.Call) (func(outcome.Outcome), error) {
	p.calls[c.Operation] = c.Polls
	return nil, nil
}

func TestReceiveMessageIsALongPoll(t *testing.T) {
	gate := &polled{map[string]bool{}}
	url, _ := answering(t, 429, nil, "")
	cfg := config(url)
	awsx.New(awsx.Options{Policy: plainPolicy, Upstream: weir.Options{Gates: []weir.Gate{gate}}}).Attach(&cfg)
	for name, call := range map[string]func(context.Context, aws.Config) error{"ReceiveMessage": reading["sqs.ReceiveMessage"], "SendMessage": doing["sqs.SendMessage"]} {
		if err := call(t.Context(), cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got, asked := gate.calls[name]; !asked || got != (name == "ReceiveMessage") {
			t.Errorf("%s: polls %v, asked %v", name, got, asked)
		}
	}
}

// A response to HEAD has no body. S3 distinguishes throttling from an outage only in the status line.
func TestAThrottledHead(t *testing.T) {
	for line, want := range map[string]string{"503 Slow Down": "throttled", "503 Service Unavailable": "failed", "404 Not Found": "rejected"} {
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 "+line+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			_ = conn.Close()
		}))
		cfg := config(far.URL)
		var class string
		awsx.New(awsx.Options{Policy: plainPolicy, Upstream: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { class = e.Outcome.Class.String() }}}}).Attach(&cfg)
		_, err := s3.NewFromConfig(cfg, pathStyle).HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: s("b"), Key: s("k")})
		if err == nil || class != want {
			t.Errorf("%s: %s, want %s: %v", line, class, want, err)
		}
		far.Close()
	}
}

// Codes that mean more, or less, than their class.
func TestCodesOfTheirOwnKind(t *testing.T) {
	for body, want := range map[string]int64{
		`{"__type":"LimitExceededException"}`:                                                                       2,
		`{"__type":"ServiceQuotaExceededException"}`:                                                                1,
		`{"__type":"TransactionCanceledException","Message":"reasons [None, ThrottlingError]"}`:                     3,
		`{"__type":"TransactionCanceledException","Message":"reasons [ConditionalCheckFailed, ThrottlingError]"}`:   1,
		`{"__type":"TransactionCanceledException","Message":"reasons [ConditionalCheckFailed]"}`:                    1,
		`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"too much"}`: 3,
	} {
		url, n := answering(t, 400, nil, body)
		cfg := config(url)
		awsx.New(awsx.Options{Policy: plainPolicy}).Attach(&cfg)
		in := &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{}}
		if _, err := dynamodb.NewFromConfig(cfg).TransactWriteItems(t.Context(), in); err == nil || n.Load() != want {
			t.Errorf("%s: %d sent, want %d: %v", body, n.Load(), want, err)
		}
	}
}

// With a real S3: objects are written and deleted, each part is a call, and lists count for their prefix.
func TestARealS3(t *testing.T) {
	far := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	defer far.Close()
	cfg := config(far.URL)
	sent := map[string]int{}
	keys := map[string]bool{}
	awsx.New(awsx.Options{PrefixDepth: 2, Upstream: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) {
		sent[e.Operation]++
		_, rest, _ := strings.Cut(e.Key, "prefix=")
		prefix, _, _ := strings.Cut(rest, ",")
		keys[prefix] = true
	}}}}).Attach(&cfg)
	c := s3.NewFromConfig(cfg, pathStyle)
	ctx, b, key := t.Context(), s("box"), s("a/b/c/d.txt")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: b})
	must(err)
	up, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: b, Key: key})
	must(err)
	part := bytes.Repeat([]byte("x"), 5<<20)
	var done []s3types.CompletedPart
	for i := int32(1); i <= 3; i++ {
		p, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: b, Key: key, UploadId: up.UploadId, PartNumber: &i, Body: bytes.NewReader(part)})
		must(err)
		done = append(done, s3types.CompletedPart{ETag: p.ETag, PartNumber: aws.Int32(i)})
	}
	_, err = c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: b, Key: key, UploadId: up.UploadId, MultipartUpload: &s3types.CompletedMultipartUpload{Parts: done}})
	must(err)
	got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: b, Key: key})
	must(err)
	body, err := io.ReadAll(got.Body)
	must(err)
	must(got.Body.Close())
	pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: b, Prefix: s("a/b/")})
	for pages.HasMorePages() {
		_, err = pages.NextPage(ctx)
		must(err)
	}
	_, err = c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b, Key: key})
	must(err)
	if len(body) != 3*len(part) || sent["UploadPart"] != 3 || sent["ListObjectsV2"] != 1 || !keys["box/a/b/"] || len(keys) > 2 {
		t.Errorf("%d bytes, %v, %v", len(body), sent, keys)
	}
}

// Batches cost their number of items.
func TestBatchesCostTheirItems(t *testing.T) {
	url, n := answering(t, 200, nil, "{}")
	cfg := config(url)
	awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy {
		p := brisk(weir.Policy{})
		p.MaxWait = -1
		p.Limits = []limit.Limit{{Name: "items", Unit: awsx.Items, Scope: awsx.Table, Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 12}}}
		return p
	}}).Attach(&cfg)
	c := dynamodb.NewFromConfig(cfg)
	put := make([]ddb.WriteRequest, 5)
	for i := range put {
		put[i] = ddb.WriteRequest{DeleteRequest: &ddb.DeleteRequest{Key: map[string]ddb.AttributeValue{}}}
	}
	for i, want := range []bool{true, true, false} {
		_, err := c.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]ddb.WriteRequest{"t": put}})
		if (err == nil) != want {
			t.Errorf("batch %d of 5 items, at 12: %v", i, err)
		}
	}
	get := map[string]ddb.KeysAndAttributes{"other": {Keys: make([]map[string]ddb.AttributeValue, 12)}}
	if _, err := c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: get}); err != nil {
		t.Errorf("another table: %v", err)
	}
	if _, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: s("other"), Key: map[string]ddb.AttributeValue{}}); err == nil || n.Load() != 3 {
		t.Errorf("%d sent: a single item is one: %v", n.Load(), err)
	}
}

// Reads and writes can have separate limits without a list of operations.
func TestReadsAndWritesAreCountedApart(t *testing.T) {
	url, _ := answering(t, 200, nil, "{}")
	cfg := config(url)
	awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy {
		p := brisk(weir.Policy{})
		p.MaxWait = -1
		p.Limits = []limit.Limit{
			{Name: "reads", Unit: awsx.Reads, Scope: awsx.Operation, Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 2}},
			{Name: "writes", Unit: awsx.Writes, Scope: awsx.Operation, Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}},
		}
		return p
	}}).Attach(&cfg)
	c := dynamodb.NewFromConfig(cfg)
	for i := range 3 {
		if _, err := c.ListTables(t.Context(), nil); (err == nil) != (i < 2) {
			t.Errorf("read %d: %v", i, err)
		}
		if _, err := c.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: s("t")}); (err == nil) != (i < 1) {
			t.Errorf("write %d: %v", i, err)
		}
	}
}
