package dynamosqs_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
)

// Records that cannot be read do not block the rest, even if there are more than one sweep reads.
func TestRecordsThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := dynamosqs.Options{Table: ofTables(), Name: name()}
		s := open(t, o)
		ctx := t.Context()
		d, _, err := s.Accept(ctx, request("up"))
		if err != nil {
			t.Fatal(err)
		}
		if all, err := s.Claim(ctx, delivery.Ask{Upstream: "up", Lease: time.Second}); err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		for n := range 250 {
			if _, err := o.Table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &o.Name, Item: map[string]types.AttributeValue{
				"k": &types.AttributeValueMemberS{Value: fmt.Sprintf("D#%d", n+1)}, "n": &types.AttributeValueMemberN{Value: "0"},
				"w": &types.AttributeValueMemberS{Value: fmt.Sprint(d.Seq % 8)}, "t": &types.AttributeValueMemberN{Value: "1"},
				"r": &types.AttributeValueMemberS{Value: "{"}}}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time from the beginning of the partition
			time.Sleep(2 * time.Second)
			told, reaped := 0, 0
			for range 3 {
				w, err := s.Sweep(ctx, nil)
				if reaped += w.Reaped; err != nil {
					told++
				}
			}
			if got, err := s.Get(ctx, d.ID); err != nil || reaped != 1 || told != 3 || got.Status != delivery.Queued {
				t.Fatalf("%d reaped, %d sweeps told of what they could not read, it is %s, %v", reaped, told, got.Status, err)
			}
			if all, err := s.Claim(ctx, delivery.Ask{Upstream: "up", Lease: time.Second}); err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
		}
	})
}
