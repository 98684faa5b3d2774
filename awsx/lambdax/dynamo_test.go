package lambdax

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// dynamo returns records in a table of an emulator, as weir store init creates it.
func dynamo(t *testing.T) *DynamoRecords {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	c := dynamodb.New(dynamodb.Options{
		Region: "local", BaseEndpoint: aws.String(servers.Dynalite(t).Endpoint()), HTTPClient: &http.Client{Transport: tr},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := dynamostore.New(c, "messages", dynamostore.Options{}).Create(ctx); err != nil {
		t.Fatal(err)
	}
	return &DynamoRecords{Client: c, Table: "messages"}
}

func TestDynamoRecords(t *testing.T) {
	t.Parallel()
	r := dynamo(t)
	t.Run("fenced", func(t *testing.T) {
		recordsAreFenced(t, r, func(d time.Duration) { r.ahead += d }, func() time.Time { return time.Now().Add(r.ahead) })
		r.ahead = 0
	})

	t.Run("one of many", func(t *testing.T) {
		var ours atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				c, err := r.Begin(t.Context(), "queue/contended", newOwner(), time.Now().Add(time.Minute))
				if err != nil {
					t.Error(err)
				}
				if c.State == Ours {
					ours.Add(1)
				}
			})
		}
		if all.Wait(); ours.Load() != 1 {
			t.Errorf("%d claims at once", ours.Load())
		}
	})
	t.Run("lost answers", func(t *testing.T) {
		lossy := &DynamoRecords{Client: &losesAnswers{DynamoAPI: r.Client}, Table: r.Table}
		s := newSQS(t, SQSOptions{Records: lossy, Handle: (&diary{}).handle})
		want(t, "nobody knows whether it was claimed", again(t, s, t.Context(), messages("lossy", "good")), "m0")
		c, err := r.Begin(t.Context(), "arn:aws:sqs:eu-west-1:123456789012:lossy/m0", "other", time.Now().Add(time.Minute))
		if err != nil || c.State != Held {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("a batch", func(t *testing.T) {
		var d diary
		s := newSQS(t, SQSOptions{Records: r, Handle: d.handle, Parallel: 1})
		for range 2 {
			want(t, "twice", again(t, s, t.Context(), messages("q", "good", "bad")), "m1")
		}
		want(t, "handled", d.all, "good", "bad", "bad")
	})
	t.Run("no table", func(t *testing.T) {
		if _, err := (&DynamoRecords{Client: r.Client, Table: "none"}).Begin(t.Context(), "x", "y", time.Now()); err == nil {
			t.Error("a table that there is not remembers")
		}
	})
}

// losesAnswers executes requests but returns errors.
type losesAnswers struct{ DynamoAPI }

func (l *losesAnswers) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if _, err := l.DynamoAPI.UpdateItem(ctx, in, o...); err != nil {
		return nil, err
	}
	return nil, errors.New("connection reset")
}
