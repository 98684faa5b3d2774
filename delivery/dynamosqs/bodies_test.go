package dynamosqs_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
)

// A bodyless table fails to return the items of bodies.
type bodyless struct {
	dynamosqs.Table
	away bool
}

func (b *bodyless) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if k, ok := in.Key["k"].(*types.AttributeValueMemberS); ok && b.away && k.Value[:2] == "B#" {
		return nil, errors.New("it does not answer now")
	}
	return b.Table.GetItem(ctx, in, o...)
}

// A body in a separate item that cannot be read now is not a missing body. Its delivery waits, no attempt counts, and
// the other deliveries of the claim are not lost.
func TestABodyThatCannotBeHadNowIsNoDeadLetter(t *testing.T) {
	for _, only := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := dynamosqs.Options{Table: ofTables(), Name: name()}
			table := &bodyless{Table: o.Table}
			o.Table = table
			s := open(t, o)
			ctx := t.Context()
			small, big := request("up"), request("up")
			big.Body = bytes.Repeat([]byte("x"), 200<<10)
			var ask delivery.Ask
			for _, r := range []*delivery.Request{small, big} {
				d, _, err := s.Accept(ctx, r)
				if err != nil {
					t.Fatal(err)
				}
				if r.ID = d.ID; only {
					ask.Only = append(ask.Only, d.Seq)
				}
				time.Sleep(time.Millisecond)
			}
			ask.Upstream, ask.Most, ask.Lease = "up", 10, 30*time.Second
			table.away = true
			all, err := s.Claim(ctx, ask)
			if err != nil || len(all) != 1 || all[0].ID != small.ID {
				t.Errorf("only %v: claimed %d, %v, want the small one", only, len(all), err)
			}
			table.away = false
			if d, err := s.Get(ctx, big.ID); err != nil || d.Status != delivery.Queued || d.Attempts != 0 {
				t.Errorf("only %v: it is %s %s after %d attempts, %v", only, d.Status, d.Detail, d.Attempts, err)
			}
			all, err = s.Claim(ctx, ask)
			if err != nil || len(all) != 1 || all[0].ID != big.ID || len(all[0].Body) != len(big.Body) {
				t.Errorf("only %v: then claimed %d, %v, want the one whose body is there again", only, len(all), err)
			}
		})
	}
}
