package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// The p99 of calls by 30 tenants, without and with another tenant's 5,000 calls a second.
func BenchmarkFleetHotKey(b *testing.B) {
	stores := []struct {
		name string
		open func(*testing.B) fleet.Store
	}{
		{"redis", func(b *testing.B) fleet.Store {
			s := must(redisstore.Open(servers.Redis(b).URL(), redisstore.Options{}))
			b.Cleanup(func() { _ = s.Close() })
			if err := s.Init(b.Context(), "api"); err != nil {
				b.Fatal(err)
			}
			return s
		}},
		{"dynamodb", func(b *testing.B) fleet.Store {
			s := dynamostore.New(dynamodb.New(dynamodb.Options{
				Region: "eu-west-1", BaseEndpoint: aws.String(servers.Dynalite(b).Endpoint()),
				Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
			}), "weir", dynamostore.Options{})
			if err := s.Create(b.Context()); err != nil {
				b.Fatal(err)
			}
			return s
		}},
	}
	for _, s := range stores {
		for _, hot := range []int{0, 5000} {
			b.Run(fmt.Sprintf("%s/beside=%d", s.name, hot), func(b *testing.B) { besideHot(b, s.open(b), hot) })
		}
	}
}

func besideHot(b *testing.B, s fleet.Store, hot int) {
	f := fleet.New(s, fleet.Options{})
	f.Start()
	b.Cleanup(func() { _ = f.Close(context.Background()) })
	u := must(weir.New("api", weir.Policy{MaxWait: 5 * time.Second, Limits: []limit.Limit{
		{Name: "tenant", Scope: "tenant", Rate: bucket.Rate{Amount: manyASecond, Per: time.Second}},
	}}, weir.Options{Fleet: f}))
	b.Cleanup(u.Close)
	call := func(tenant string) {
		p, err := u.Acquire(context.Background(), weir.Call{Keys: map[string]string{"tenant": tenant}})
		if err != nil {
			b.Error(err)
			return
		}
		p.Report(outcome.Outcome{Class: outcome.OK})
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range hot / 100 {
		wg.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-tick.C:
					call("hot")
				}
			}
		})
	}
	for i := range 30 { // limits of a new store start empty
		wg.Go(func() {
			for range 200 {
				call(fmt.Sprint("tenant", i))
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	time.Sleep(3 * time.Second)
	took := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for i := range b.N {
		begin := time.Now()
		call(fmt.Sprint("tenant", i%30))
		took = append(took, time.Since(begin))
		time.Sleep(time.Millisecond)
	}
	b.StopTimer()
	close(done)
	wg.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
	b.ReportMetric(0, "ns/op")
}
