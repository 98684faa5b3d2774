package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// An updater is a client that records the duration of its updates.
type updater struct {
	*dynamodb.Client
	took []time.Duration
}

func (u *updater) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	begin := time.Now()
	out, err := u.Client.UpdateItem(ctx, in, o...)
	u.took = append(u.took, time.Since(begin))
	return out, err
}

// Store time as weir measures it (RateLimiterAcquisitionLatency), and a bare conditional UpdateItem at the same emulator in
// alternation: one caller, one hot key, no leases. Compare the medians of one run. The result also contains the duration of the
// UpdateItem that weir sends, in the SDK and the emulator.
func BenchmarkFleetDynamoTime(b *testing.B) {
	client := dynamoClient(servers.Dynalite(b))
	updates := &updater{Client: client}
	s := dynamostore.New(updates, "weir", dynamostore.Options{})
	if err := s.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	var told []time.Duration
	f := fleet.New(s, fleet.Options{Lease: -1, Timeout: 5 * time.Second, Guard: time.Second, Events: fleet.Events{Called: func(e fleet.StoreCall) {
		if e.Err == nil && e.Calls > 0 {
			told = append(told, e.Took)
		}
	}}})
	f.Start()
	b.Cleanup(func() { _ = f.Close(context.Background()) })
	weir, bare := permits(f.Group(fmt.Sprint("bench", groups.Add(1))), 1), dynamoAdd(client)
	for range 200 { // warm up connections and the emulator's compiler
		if !weir() || !bare() {
			b.Fatal("a call failed")
		}
	}
	told, updates.took = told[:0], updates.took[:0]
	var alone []time.Duration
	for b.Loop() {
		begin := time.Now()
		ok := bare()
		alone = append(alone, time.Since(begin))
		if !weir() || !ok {
			b.Fatal("a call failed")
		}
	}
	w, u, own := median(told), median(alone), median(updates.took)
	b.ReportMetric(float64(w.Microseconds()), "us-weir")
	b.ReportMetric(float64(u.Microseconds()), "us-bare")
	b.ReportMetric(float64(w)/float64(u), "weir/bare")
	b.ReportMetric(float64(w)/float64(own), "weir/its-update")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
