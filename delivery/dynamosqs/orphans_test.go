package dynamosqs_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
)

// kept returns how many bodies, notes and deliveries a table contains.
func kept(t *testing.T, o dynamosqs.Options) (n map[string]int) {
	t.Helper()
	n = make(map[string]int)
	out, err := o.Table.(*dynamodb.Client).Scan(t.Context(), &dynamodb.ScanInput{TableName: &o.Name})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range out.Items {
		if k := it["k"].(*types.AttributeValueMemberS).Value + "  "; slices.Contains([]string{"B#", "O#", "D#"}, k[:2]) {
			n[k[:2]]++
		}
	}
	return n
}

// A process may end at any point while it stores a body in a separate item. The body stays if its record is stored, and
// is removed otherwise. A body that is stored again under the same key just before a sweep stays.
func TestBodiesWithoutARecordGo(t *testing.T) {
	again := func(t *testing.T, s *dynamosqs.Store, r *delivery.Request) delivery.Delivery {
		d, _, err := s.Accept(t.Context(), r)
		if err != nil || !bytes.Equal(d.Body, r.Body) {
			t.Fatal(len(d.Body), err)
		}
		return d
	}
	sweep := func(t *testing.T, s *dynamosqs.Store) {
		for range 2 {
			if _, err := s.Sweep(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n, ended := int64(0), false; !ended; n++ {
		for _, repeated := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				o := dynamosqs.Options{Table: ofTables(), Name: name()}
				two := open(t, o)
				of := o
				m := &mortal{Table: o.Table}
				m.left.Store(n)
				of.Table = m
				one, err := dynamosqs.New(of)
				if err != nil {
					t.Fatal(err)
				}
				r := request("up")
				r.Key, r.Body = "k", bytes.Repeat([]byte("x"), 100<<10)
				_, _, err = one.Accept(t.Context(), r)
				ended = m.left.Load() >= 0
				time.Sleep(59 * time.Minute)
				if sweep(t, two); repeated {
					again(t, two, r)
				}
				before := kept(t, o)
				time.Sleep(2 * time.Minute)
				sweep(t, two)
				is := kept(t, o)
				if err == nil && is["D#"] != 1 || repeated && is["D#"] != 1 {
					t.Errorf("after %d requests: what was accepted is gone: %v", n, is)
				}
				if is["B#"] != is["D#"] {
					t.Errorf("after %d requests, again %v: before the sweep %v, after it %v", n, repeated, before, is)
				}
				if is["D#"] == 1 {
					d := again(t, two, r)
					if got, err := two.Claim(t.Context(), delivery.Ask{Upstream: "up", Only: []int64{d.Seq}, Lease: time.Second}); err != nil || len(got) != 1 || len(got[0].Body) != len(r.Body) {
						t.Errorf("after %d requests: claimed %d, %v", n, len(got), err)
					}
				}
				time.Sleep(2 * time.Hour)
				sweep(t, two)
				if is := kept(t, o); is["O#"] != 0 {
					t.Errorf("after %d requests: words stay: %v", n, is)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// A body that is stored again during a sweep is not removed by it.
func TestABodyThatIsStoredAgainStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := dynamosqs.Options{Table: ofTables(), Name: name()}
		open(t, o)
		of := o
		late := &lateTable{Client: o.Table.(*dynamodb.Client)}
		of.Table = late
		s, err := dynamosqs.New(of)
		if err != nil {
			t.Fatal(err)
		}
		r := request("up")
		r.Key, r.Body = "k", bytes.Repeat([]byte("x"), 100<<10)
		late.refuse = "D#"
		if _, _, err := s.Accept(t.Context(), r); err == nil {
			t.Fatal("its record was stored")
		}
		late.refuse = ""
		time.Sleep(61 * time.Minute)
		late.beforeRemoving = func() {
			if _, _, err := s.Accept(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Sweep(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if is := kept(t, o); late.beforeRemoving != nil || is["B#"] != 1 || is["D#"] != 1 {
			t.Errorf("there are %v", is)
		}
	})
}

// A lateTable refuses to store items of one kind, and calls a function before the first body is removed.
type lateTable struct {
	*dynamodb.Client
	refuse         string
	beforeRemoving func()
}

func (l *lateTable) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if k := in.Item["k"].(*types.AttributeValueMemberS).Value; l.refuse != "" && strings.HasPrefix(k, l.refuse) {
		return nil, errDead
	}
	return l.Client.PutItem(ctx, in, o...)
}

func (l *lateTable) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if k := in.Key["k"].(*types.AttributeValueMemberS).Value; strings.HasPrefix(k, "B#") && l.beforeRemoving != nil {
		first := l.beforeRemoving
		l.beforeRemoving = nil
		first()
	}
	return l.Client.DeleteItem(ctx, in, o...)
}
