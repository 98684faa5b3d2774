package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/drs"
	drstypes "github.com/aws/aws-sdk-go-v2/service/drs/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/seed1158cd35/weir/awsx/wire"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// An endpoint answers every request itself, and records the recognized operation.
type endpoint struct {
	op     wire.Op
	answer func(w http.ResponseWriter, o wire.Op, method string)
	sent   int
}

func (w *endpoint) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	w.sent++
	w.op = wire.Recognize(wire.Request{
		Service: scope(r.Header.Get("Authorization")), Method: r.Method, Host: r.URL.Host,
		Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header, Form: body,
	})
	rec := httptest.NewRecorder()
	if w.answer != nil {
		w.answer(rec, w.op, r.Method)
	} else {
		rec.WriteHeader(http.StatusTeapot)
	}
	return rec.Result(), nil
}

// scope returns the service in a signature.
func scope(authorization string) string {
	_, rest, _ := strings.Cut(authorization, "Credential=")
	rest, _, _ = strings.Cut(rest, ",")
	if part := strings.Split(rest, "/"); len(part) > 3 {
		return part[3]
	}
	return ""
}

func (w *endpoint) config() aws.Config {
	return aws.Config{
		Region: "eu-west-1", HTTPClient: w, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		RetryMaxAttempts: 3, Retryer: nil,
	}
}

type call struct {
	name  string
	safe  bool
	write bool
	do    func(context.Context, aws.Config) error
}

func calls() []call {
	s := aws.String
	onS3 := func(do func(context.Context, *s3.Client) error) func(context.Context, aws.Config) error {
		return func(ctx context.Context, c aws.Config) error {
			return do(ctx, s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = len(c.Region)%2 == 0 }))
		}
	}
	return []call{
		{"ListBuckets", true, false, onS3(func(ctx context.Context, c *s3.Client) error { _, err := c.ListBuckets(ctx, nil); return err })},
		{"GetObject", true, false, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: s("b"), Key: s("a b/ü+//c%2F")})
			return err
		})},
		{"HeadObject", true, false, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: s("b"), Key: s("k")})
			return err
		})},
		{"PutObject", true, true, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: s("b"), Key: s("k"), Body: bytes.NewReader([]byte("x"))})
			return err
		})},
		{"CopyObject", true, true, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: s("b"), Key: s("k"), CopySource: s("b/j")})
			return err
		})},
		{"DeleteObject", true, true, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: s("b"), Key: s("k")})
			return err
		})},
		{"DeleteObjects", true, true, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: s("b"), Delete: &s3types.Delete{Objects: []s3types.ObjectIdentifier{{Key: s("k")}}}})
			return err
		})},
		{"ListObjectsV2", true, false, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: s("b"), Prefix: s("p/")})
			return err
		})},
		{"CreateMultipartUpload", false, true, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: s("b"), Key: s("k")})
			return err
		})},
		{"UploadPart", true, true, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: s("b"), Key: s("k"), UploadId: s("u"), PartNumber: aws.Int32(1), Body: bytes.NewReader([]byte("x"))})
			return err
		})},
		{"UploadPartCopy", true, true, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.UploadPartCopy(ctx, &s3.UploadPartCopyInput{Bucket: s("b"), Key: s("k"), UploadId: s("u"), PartNumber: aws.Int32(1), CopySource: s("b/j")})
			return err
		})},
		{"CompleteMultipartUpload", true, true, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: s("b"), Key: s("k"), UploadId: s("u")})
			return err
		})},
		{"AbortMultipartUpload", true, true, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: s("b"), Key: s("k"), UploadId: s("u")})
			return err
		})},
		{"GetObjectTagging", true, false, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: s("b"), Key: s("k")})
			return err
		})},
		{"HeadBucket", true, false, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: s("b")})
			return err
		})},
		{"GetBucketLocation", true, false, onS3(func(ctx context.Context, c *s3.Client) error {
			_, err := c.GetBucketLocation(ctx, &s3.GetBucketLocationInput{Bucket: s("b")})
			return err
		})},
		{"GetItem", true, false, func(ctx context.Context, c aws.Config) error {
			_, err := dynamodb.NewFromConfig(c).GetItem(ctx, &dynamodb.GetItemInput{TableName: s("t"), Key: map[string]ddb.AttributeValue{"k": &ddb.AttributeValueMemberS{Value: "v"}}})
			return err
		}},
		{"UpdateItem", false, true, func(ctx context.Context, c aws.Config) error {
			_, err := dynamodb.NewFromConfig(c).UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: s("t"), Key: map[string]ddb.AttributeValue{"k": &ddb.AttributeValueMemberS{Value: "v"}}})
			return err
		}},
		{"TransactWriteItems", true, true, func(ctx context.Context, c aws.Config) error { // the SDK adds a token
			_, err := dynamodb.NewFromConfig(c).TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{}})
			return err
		}},
		{"DescribeSourceServers", true, false, func(ctx context.Context, c aws.Config) error {
			_, err := drs.NewFromConfig(c).DescribeSourceServers(ctx, &drs.DescribeSourceServersInput{})
			return err
		}},
		{"StartRecovery", false, true, func(ctx context.Context, c aws.Config) error {
			_, err := drs.NewFromConfig(c).StartRecovery(ctx, &drs.StartRecoveryInput{SourceServers: []drstypes.StartRecoveryRequestSourceServer{{SourceServerID: s("s")}}})
			return err
		}},
		{"TerminateRecoveryInstances", true, true, func(ctx context.Context, c aws.Config) error {
			_, err := drs.NewFromConfig(c).TerminateRecoveryInstances(ctx, &drs.TerminateRecoveryInstancesInput{RecoveryInstanceIDs: []string{"i"}})
			return err
		}},
		{"SendMessage", false, true, func(ctx context.Context, c aws.Config) error {
			_, err := sqs.NewFromConfig(c).SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: s("https://sqs.eu-west-1.amazonaws.com/1/q"), MessageBody: s("m")})
			return err
		}},
		{"ReceiveMessage", true, true, func(ctx context.Context, c aws.Config) error {
			_, err := sqs.NewFromConfig(c).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: s("https://sqs.eu-west-1.amazonaws.com/1/q")})
			return err
		}},
		{"AssumeRole", true, true, func(ctx context.Context, c aws.Config) error {
			_, err := sts.NewFromConfig(c).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: s("arn:aws:iam::1:role/r"), RoleSessionName: s("s")})
			return err
		}},
		{"Publish", false, true, func(ctx context.Context, c aws.Config) error {
			_, err := sns.NewFromConfig(c).Publish(ctx, &sns.PublishInput{TopicArn: s("t"), Message: s("m")})
			return err
		}},
		{"PutMetricData", false, true, func(ctx context.Context, c aws.Config) error {
			_, err := cloudwatch.NewFromConfig(c).PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: s("n")})
			return err
		}},
		{"Invoke", false, true, func(ctx context.Context, c aws.Config) error {
			_, err := lambda.NewFromConfig(c).Invoke(ctx, &lambda.InvokeInput{FunctionName: s("arn:aws:lambda:eu-west-1:123456789012:function:f")})
			return err
		}},
		{"GetFunction", true, false, func(ctx context.Context, c aws.Config) error {
			_, err := lambda.NewFromConfig(c).GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: s("f")})
			return err
		}},
		{"Converse", true, true, func(ctx context.Context, c aws.Config) error {
			_, err := bedrockruntime.NewFromConfig(c).Converse(ctx, &bedrockruntime.ConverseInput{ModelId: s("anthropic.claude-3-haiku-20240307-v1:0")})
			return err
		}},
		{"InvokeModelWithResponseStream", true, true, func(ctx context.Context, c aws.Config) error {
			_, err := bedrockruntime.NewFromConfig(c).InvokeModelWithResponseStream(ctx, &bedrockruntime.InvokeModelWithResponseStreamInput{ModelId: s("m"), Body: []byte("{}")})
			return err
		}},
	}
}

// Requests that the SDK makes are recognized.
func TestOperationsAreThoseOfTheSDK(t *testing.T) {
	for _, region := range []string{"eu-west-1", "us-east-11"} { // S3: the bucket in the host, and in the path
		for _, c := range calls() {
			w := &endpoint{}
			cfg := w.config()
			cfg.Region = region
			_ = c.do(t.Context(), cfg) // it fails without a response
			if w.op.Name != c.name || w.op.Safe != c.safe || w.op.Write != c.write {
				t.Errorf("%s in %s: recognized %+v, want %+v", c.name, region, w.op, c)
			}
			if c.name == "ListObjectsV2" && w.op.Key != "p/" {
				t.Errorf("a list of %q", w.op.Key)
			}
			if c.name == "GetObject" && (w.op.Bucket != "b" || w.op.Key != "a b/ü+//c%2F") {
				t.Errorf("bucket %q, key %q", w.op.Bucket, w.op.Key)
			}
		}
	}
}

// The SDK understands an error: it repeats retryable errors and not final ones.
func TestErrorsAreUnderstoodByTheSDK(t *testing.T) {
	for _, c := range calls() {
		if strings.HasPrefix(c.name, "Head") {
			continue // it has no body
		}
		for _, e := range []wire.Error{
			{Kind: refuse.Limited, RetryAfter: time.Millisecond},
			{Kind: refuse.Limited, Final: true}, {Kind: refuse.Unavailable}, {Kind: refuse.Unavailable, Final: true},
			{Kind: refuse.Exhausted, Final: true}, {Kind: refuse.Invalid, Final: true},
			{Kind: refuse.TooLarge, Final: true}, {Kind: refuse.GaveUp, Final: true},
		} {
			e.Message, e.ID = "weir: limit <l> & more", "id-1"
			w := &endpoint{answer: func(w http.ResponseWriter, o wire.Op, method string) { e.Write(w, o, method) }}
			cfg := w.config()
			cfg.Retryer = func() aws.Retryer { return quick{aws.NopRetryer{}} }
			err := c.do(t.Context(), cfg)
			var api smithy.APIError
			if !errors.As(err, &api) || api.ErrorMessage() != e.Message {
				t.Errorf("%s, %+v: the SDK understands %v", c.name, e, err)
				continue
			}
			if again := repeats(err); again == e.Final {
				t.Errorf("%s, %+v: %s is repeated: %v", c.name, e, api.ErrorCode(), again)
			}
		}
	}
}
