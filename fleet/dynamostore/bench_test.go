package dynamostore

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// 32 callers take from one key without leases. bare is the minimum for any store on DynamoDB: one conditional ADD.
func BenchmarkHotKey(b *testing.B) {
	server := servers.Dynalite(b)
	o := near
	s := open(b, server, o)
	b.Run("bare", func(b *testing.B) { callers(b, bare(client(server.Endpoint(), transport(b)))) })
	busy := bucket.MeterOf(bucket.Rate{Amount: 5000, Per: time.Second, Burst: 1_000_000})
	idle := bucket.MeterOf(bucket.Rate{Amount: 1_000_000, Per: time.Second, Burst: 1_000_000})
	for _, r := range []fleet.Rule{
		{Name: "busy", Shape: limit.Bucket, Meter: busy},
		{Name: "idle", Shape: limit.Bucket, Meter: idle},
		{Name: "rolling", Shape: limit.Rolling, Amount: 1 << 30, Ring: bucket.RingOf(bucket.Window{Amount: 1 << 30, Per: time.Minute})},
		{Name: "fixed", Shape: limit.Calendar, Amount: 1 << 40},
	} {
		b.Run(r.Name, func(b *testing.B) {
			before := s.Stats()
			now := time.Now()
			w := limit.Windows{Start: now.Add(-time.Hour), End: now.Add(time.Hour), Next: now.Add(2 * time.Hour)}
			callers(b, func(lane uint64) error {
				a := fleet.Ask{Group: "g", ID: rand.Uint64() | 1, Lane: lane, Copies: 1, Claims: []fleet.Claim{{Rule: &r, Key: r.Name, Cost: 1, Windows: w}}}
				return s.Take(context.Background(), &a)
			})
			after := s.Stats()
			b.ReportMetric(100*float64(after.Failed-before.Failed)/float64(after.Requests-before.Requests), "%failed")
		})
	}
}

func callers(b *testing.B, call func(lane uint64) error) {
	b.ReportAllocs()
	b.SetParallelism(16) // 32 callers on two processors
	var lanes atomic.Uint64
	b.RunParallel(func(pb *testing.PB) {
		lane := lanes.Add(1)
		for pb.Next() {
			if err := call(lane); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func bare(c *dynamodb.Client) func(uint64) error {
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	return func(uint64) error {
		_, err := c.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
			TableName: aws.String("weir"), Key: keyOf("bare"),
			UpdateExpression: aws.String("ADD c :n"), ConditionExpression: aws.String("attribute_not_exists(c) OR c <= :m"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": number(1), ":m": number(1 << 40)},
		})
		return err
	}
}
