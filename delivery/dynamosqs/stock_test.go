package dynamosqs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
)

// bounded returns options with a limit of four deliveries, and two per tenant.
func bounded() dynamosqs.Options {
	return dynamosqs.Options{Table: ofTables(), Name: name(), MaxStored: 4}
}

// hasRoom accepts requests until one is refused, and returns how many were stored.
func hasRoom(t *testing.T, s *dynamosqs.Store, tenant string) (n int) {
	t.Helper()
	for ; n < 10; n++ {
		r := request("up")
		r.Tenant = tenant
		if _, _, err := s.Accept(context.Background(), r); errors.Is(err, delivery.ErrFull) || errors.Is(err, delivery.ErrShare) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("nothing bounds what is stored")
	return 0
}

func TestProcessesShareOneBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := bounded()
		one, other := open(t, o), open(t, o)
		if n := hasRoom(t, one, "mallory"); n != 2 {
			t.Errorf("a tenant stored %d, want 2", n)
		}
		if n := hasRoom(t, other, "mallory"); n != 0 {
			t.Errorf("the tenant stored %d more at another process, want 0", n)
		}
		if n := hasRoom(t, other, ""); n != 2 {
			t.Errorf("others stored %d, want 2", n)
		}
		if n := hasRoom(t, one, ""); n != 0 {
			t.Errorf("others stored %d more at the first process, want 0", n)
		}
		for _, f := range []delivery.Filter{{Tenant: "mallory"}, {Status: delivery.Failed}} {
			if n, err := one.Drop(context.Background(), f, 10); err != nil || n != 2 {
				t.Fatal(n, err)
			}
		}
		if n := hasRoom(t, other, "mallory"); n != 2 {
			t.Errorf("after its dead letters were deleted the tenant stored %d, want 2", n)
		}
	})
}

// Numbers that a process left wrong between two writes are corrected in time.
func TestWrongNumbersAreCorrected(t *testing.T) {
	add := func(t *testing.T, o dynamosqs.Options, k types.AttributeValue, n types.AttributeValue, what string) {
		t.Helper()
		_, err := o.Table.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: &o.Name, Key: map[string]types.AttributeValue{"k": k, "n": n},
			UpdateExpression: aws.String("ADD " + what + " :n"), ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "2"}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("of all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := bounded()
			s := open(t, o)
			if n := hasRoom(t, s, ""); n != 4 {
				t.Fatal(n)
			}
			for _, f := range []delivery.Filter{{Upstream: "up"}, {Status: delivery.Failed}} {
				if _, err := s.Drop(context.Background(), f, 3); err != nil {
					t.Fatal(err)
				}
			}
			add(t, o, &types.AttributeValueMemberS{Value: "C#up"}, &types.AttributeValueMemberN{Value: "0"}, "n_queued")
			if n := hasRoom(t, s, ""); n != 1 {
				t.Fatalf("with a wrong number %d were stored, want 1", n)
			}
			time.Sleep(2 * time.Hour)
			if _, err := s.Sweep(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			if n := hasRoom(t, s, ""); n != 2 {
				t.Errorf("%d more were stored, want 2", n)
			}
		})
	})
	t.Run("of a tenant", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := bounded()
			s := open(t, o)
			if n := hasRoom(t, s, "t"); n != 2 {
				t.Fatal(n)
			}
			out, err := o.Table.(*dynamodb.Client).Scan(context.Background(), &dynamodb.ScanInput{TableName: &o.Name})
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range out.Items {
				if strings.HasPrefix(it["k"].(*types.AttributeValueMemberS).Value, "T#") {
					add(t, o, it["k"], it["n"], "n_stored")
				}
			}
			for _, f := range []delivery.Filter{{Upstream: "up"}, {Status: delivery.Failed}} {
				if n, err := s.Drop(context.Background(), f, 10); err != nil || n != 2 {
					t.Fatal(n, err)
				}
			}
			if n := hasRoom(t, s, "t"); n != 0 {
				t.Fatalf("with a wrong number %d were stored, want 0", n)
			}
			time.Sleep(160 * 24 * time.Hour)
			if n := hasRoom(t, s, "t"); n != 2 {
				t.Errorf("%d were stored after its week was forgotten, want 2", n)
			}
		})
	})
}
