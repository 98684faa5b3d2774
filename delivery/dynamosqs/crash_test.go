package dynamosqs_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A mortal table accepts a number of requests and then none.
type mortal struct {
	dynamosqs.Table
	left atomic.Int64
}

var errDead = errors.New("the process has ended")

func (m *mortal) lives() error {
	if m.left.Add(-1) < 0 {
		return errDead
	}
	return nil
}

func (m *mortal) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := m.lives(); err != nil {
		return nil, err
	}
	return m.Table.GetItem(ctx, in, o...)
}

func (m *mortal) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := m.lives(); err != nil {
		return nil, err
	}
	return m.Table.PutItem(ctx, in, o...)
}

func (m *mortal) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := m.lives(); err != nil {
		return nil, err
	}
	return m.Table.UpdateItem(ctx, in, o...)
}

func (m *mortal) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if err := m.lives(); err != nil {
		return nil, err
	}
	return m.Table.DeleteItem(ctx, in, o...)
}

func (m *mortal) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if err := m.lives(); err != nil {
		return nil, err
	}
	return m.Table.Query(ctx, in, o...)
}

// If a process ends between any two requests, another one delivers what it accepted, in the order of the key, and
// nothing after a recorded success.
func TestAProcessEndsBetweenAnyTwoSteps(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	for n, ended := int64(0), false; !ended; n++ {
		synctest.Test(t, func(t *testing.T) {
			o := dynamosqs.Options{Table: ofTables(), Name: name()}
			two := open(t, o)
			m := &mortal{Table: o.Table}
			m.left.Store(n)
			o.Table = m
			one, err := dynamosqs.New(o)
			if err != nil {
				t.Fatal(err)
			}
			accepted, done := story(one)
			ended = m.left.Load() >= 0
			finish(t, two, accepted, done)
			if t.Failed() {
				t.Fatalf("the process ended after %d requests", n)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// story runs the process that ends. It returns the accepted deliveries, and the deliveries with a recorded success.
func story(s *dynamosqs.Store) (accepted []string, done map[string]bool) {
	ctx := context.Background()
	done = make(map[string]bool)
	for _, key := range []string{"a", "b", "c"} {
		r := request("up")
		r.OrderKey, r.Key = "line", key
		if d, _, err := s.Accept(ctx, r); err == nil {
			accepted = append(accepted, d.ID)
		}
	}
	for _, to := range []delivery.Status{delivery.Completed, delivery.Failed} {
		all, _ := s.Claim(ctx, delivery.Ask{Upstream: "up", Lease: 30 * time.Second})
		for _, d := range all {
			if lost, err := s.End(ctx, delivery.End{Claim: d.Claim(), To: to, Reason: "", Attempt: &delivery.Attempt{Status: 200}}); err == nil && len(lost) == 0 && to == delivery.Completed {
				done[d.ID] = true
			}
		}
	}
	return accepted, done
}

func finish(t *testing.T, s *dynamosqs.Store, accepted []string, done map[string]bool) {
	ctx := context.Background()
	var order []string
	for range 12 {
		time.Sleep(20 * time.Second)
		if _, err := s.Sweep(ctx, nil); err != nil {
			t.Fatal(err)
		}
		all, err := s.Claim(ctx, delivery.Ask{Upstream: "up", Most: 10, Lease: 30 * time.Second})
		if err != nil || len(all) > 1 {
			t.Fatalf("%d of one key at once, %v", len(all), err)
		}
		for _, d := range all {
			if done[d.ID] {
				t.Errorf("%s is claimed after its success", d.Key)
			}
			if lost, err := s.End(ctx, delivery.End{Claim: d.Claim(), To: delivery.Completed}); err != nil || len(lost) > 0 {
				t.Fatal(lost, err)
			}
			order = append(order, d.Key)
		}
	}
	for i := 1; i < len(order); i++ {
		if order[i] <= order[i-1] {
			t.Errorf("delivered in the order %v", order)
		}
	}
	for _, id := range accepted {
		if d, err := s.Get(ctx, id); err != nil || d.Waits() {
			t.Errorf("%s was accepted, and is %s, %v", d.Key, d.Status, err)
		}
	}
	counts(t, s)
}

// counts checks that the counts are correct after some hours.
func counts(t *testing.T, s *dynamosqs.Store) {
	ctx := context.Background()
	time.Sleep(2 * time.Hour)
	if _, err := s.Sweep(ctx, nil); err != nil {
		t.Fatal(err)
	}
	page, _, err := s.List(ctx, delivery.Filter{}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[delivery.Status]int64)
	for _, d := range page {
		want[d.Status]++
	}
	all, err := s.Counts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.N != want[c.Status] {
			t.Errorf("%d are said to be %s, want %d", c.N, c.Status, want[c.Status])
		}
		delete(want, c.Status)
	}
	if len(want) > 0 {
		t.Errorf("not counted: %v", want)
	}
}

// While the table is unavailable, Accept returns ErrUncertain and stores no delivery.
func TestATableThatIsAway(t *testing.T) {
	of := servers.Dynalite(t)
	s := open(t, dynamosqs.Options{Table: at(of), Name: name()})
	of.Kill()
	if d, _, err := s.Accept(t.Context(), request("a")); !errors.Is(err, delivery.ErrUncertain) || d.ID == "" {
		t.Errorf("accepted %q: %v", d.ID, err)
	}
	if _, err := s.Get(t.Context(), "x"); err == nil || errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
}

// A silent table stops responding at some point.
type silent struct {
	dynamosqs.Table
	now, counts atomic.Bool // for all requests; for requests about counts
}

func (s *silent) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if s.now.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Table.PutItem(ctx, in, o...)
}

func (s *silent) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	k, _ := in.Key["k"].(*types.AttributeValueMemberS)
	if s.now.Load() || s.counts.Load() && k != nil && strings.HasPrefix(k.Value, "C#") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Table.UpdateItem(ctx, in, o...)
}

// If the table does not respond, Accept returns within a second, even while differences of counts are pending.
func TestATableThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &silent{Table: ofTables()}
		s := open(t, dynamosqs.Options{Table: table, Name: name()})
		if _, _, err := s.Accept(t.Context(), request("a")); err != nil {
			t.Fatal(err)
		}
		table.counts.Store(true)
		all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Most: 1, Lease: time.Minute})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		table.now.Store(true)
		for range 2 {
			begin := time.Now()
			if _, _, err := s.Accept(t.Context(), request("a")); !errors.Is(err, delivery.ErrUncertain) {
				t.Errorf("accepted: %v", err)
			}
			if took := time.Since(begin); took > time.Second {
				t.Errorf("it took %v", took)
			}
		}
		table.now.Store(false)
		if d, err := s.Get(t.Context(), all[0].ID); err != nil || d.Status != delivery.Processing {
			t.Errorf("%s, %v", d.Status, err)
		}
	})
}

// A breaking transport loses its next connection before the request is sent.
type breaking struct {
	http.RoundTripper
	next atomic.Bool
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.next.Swap(false) {
		return nil, syscall.ECONNRESET
	}
	return b.RoundTripper.RoundTrip(r)
}

// An accept has less than a second. If it loses the connection of its first request, it has time for another one.
func TestAnAcceptOutlivesALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breaks := &breaking{RoundTripper: httpClient().Transport}
		table := dynamodb.New(ofTables().Options(), func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: breaks} })
		s := open(t, dynamosqs.Options{Table: table, Name: name()})
		for range 50 {
			breaks.next.Store(true)
			if _, _, err := s.Accept(t.Context(), request("up")); err != nil {
				t.Fatal(err)
			}
			if breaks.next.Load() {
				t.Fatal("no connection was lost")
			}
		}
	})
}
