package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// dynamoCallers is the number of concurrent callers.
const dynamoCallers = 32

// One hot key in the emulator, without leases: weir as a program uses it, where callers share a request; one request per
// caller; and a bare conditional ADD.
func BenchmarkFleetDynamo(b *testing.B) {
	client := dynamoClient(servers.Dynalite(b))
	s := dynamostore.New(client, "weir", dynamostore.Options{})
	if err := s.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	rows := []row{
		{"weir", func() op { return dynamoShared(b, s) }},
		{"weir's store alone", func() op { return dynamoTake(s) }},
	}
	for _, r := range rows {
		take := r.new()
		if !take() { // the first request learns the server's clock
			b.Fatal("the first call was refused")
		}
		b.Run(r.name+"/g=32", func(b *testing.B) {
			before := s.Stats()
			many(b, take)
			after := s.Stats()
			b.ReportMetric(100*float64(after.Failed-before.Failed)/float64(max(1, after.Requests-before.Requests)), "%failed")
		})
	}
	b.Run("ADD/g=32", func(b *testing.B) { many(b, dynamoAdd(client)) })
}

func dynamoClient(server *servers.Server) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

func many(b *testing.B, do op) {
	b.SetParallelism(max(1, dynamoCallers/runtime.GOMAXPROCS(0)))
	var wrong atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !do() {
				wrong.Add(1)
			}
		}
	})
	if wrong.Load() > 0 {
		b.Errorf("%d of %d calls were not allowed", wrong.Load(), b.N)
	}
}

func dynamoShared(b *testing.B, s fleet.Store) op {
	f := fleet.New(s, fleet.Options{Lease: -1, Timeout: 5 * time.Second, Guard: time.Second})
	f.Start()
	b.Cleanup(func() { _ = f.Close(context.Background()) })
	return permits(f.Group(fmt.Sprint("bench", groups.Add(1))), 1)
}

func dynamoTake(s *dynamostore.Store) op {
	// The rate is close to the emulator's, so that the bucket stays in use.
	rule := &fleet.Rule{Name: "l", Meter: bucket.MeterOf(bucket.Rate{Amount: 3000, Per: time.Second, Burst: 10_000_000})}
	var ids atomic.Uint64
	name := fmt.Sprint("bench", groups.Add(1))
	free := make(chan *fleet.Ask, dynamoCallers)
	for i := range dynamoCallers {
		free <- &fleet.Ask{Group: name, Lane: uint64(i + 1), Copies: 1, Claims: []fleet.Claim{{Rule: rule, Cost: 1}}}
	}
	ctx := context.Background()
	return func() bool {
		a := <-free
		a.ID = ids.Add(1)
		err := s.Take(ctx, a)
		ok := err == nil && a.Granted == 1
		free <- a
		return ok
	}
}

func dynamoAdd(c *dynamodb.Client) op {
	ctx := context.Background()
	return func() bool {
		_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String("weir"), Key: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "bare"}},
			UpdateExpression: aws.String("ADD c :n"), ConditionExpression: aws.String("attribute_not_exists(c) OR c < :limit"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":n": &types.AttributeValueMemberN{Value: "1"}, ":limit": &types.AttributeValueMemberN{Value: "1000000000"},
			},
		})
		return err == nil
	}
}
