package dynamostore

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
)

// client returns a client of an emulator, which needs no region or credentials.
func client(endpoint string, transport http.RoundTripper) *dynamodb.Client {
	return clientAt(endpoint, &http.Client{Transport: transport})
}

func clientOf(f *fake) *dynamodb.Client { return clientAt("http://fake", f) }

func clientAt(endpoint string, c dynamodb.HTTPClient) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "local", BaseEndpoint: aws.String(endpoint), HTTPClient: c,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

func transport(t testing.TB) *http.Transport {
	tr := &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// near is for tests with an emulator, which has a single clock, so that they wait less.
var near = Options{Margin: 2 * time.Millisecond}

// open returns a store on an emulator, with its table.
func open(t testing.TB, server *servers.Server, o Options) *Store {
	t.Helper()
	s := New(client(server.Endpoint(), transport(t)), "weir", o)
	create(t, s)
	calibrated(t, s)
	return s
}

// calibrated waits until the store knows the time as precisely as possible.
func calibrated(t testing.TB, s *Store) {
	t.Helper()
	for range 2000 {
		if _, _, err := s.Load(context.Background(), "", nil); err != nil {
			t.Fatal(err)
		}
		if s.clock.sharp() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the time is not known")
}

func create(t testing.TB, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Create(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	server, hand := servers.Dynalite(t), storetest.NewHand()
	var stores [3]*Store
	for i := range stores {
		stores[i] = open(t, server, Options{exact: hand.Now})
	}
	var n atomic.Int64
	open := func(testing.TB) fleet.Store { return stores[n.Add(1)%3] }
	storetest.TestStore(t, open, storetest.Driven(hand.Advance), storetest.Hammer(time.Duration(campaign.Of(raced.Of(150, 40), 350))*time.Millisecond))
	for _, s := range stores {
		t.Logf("%+v", s.Stats())
	}
}

// DynamoDB may remove an item only when its limits are full again, and after at least a week.
func TestItemsOutliveTheirLimits(t *testing.T) {
	hand := storetest.NewHand()
	f := newFake(hand.Now)
	s := New(clientOf(f), "weir", Options{exact: hand.Now})
	now := hand.Now()
	a := ask(1, "k")
	month := &fleet.Rule{Name: "month", Shape: limit.Calendar, Amount: 10}
	wants := func(least time.Duration) {
		t.Helper()
		if err := take(t, s, a); err != nil || a.Granted != a.Copies {
			t.Fatalf("granted %d, %v", a.Granted, err)
		}
		ttl := number(f.items[name("t", "g", "k")]["ttl"]).Int64()
		if kept := time.Unix(ttl, 0).Sub(now); kept < least || kept > least+24*time.Hour {
			t.Errorf("kept for %v, want %v", kept, least)
		}
	}
	wants(7 * 24 * time.Hour)
	a = ask(1, "k")
	a.Claims[0] = fleet.Claim{Rule: month, Key: "k", Cost: 1, Windows: limit.Windows{Start: now.Add(-time.Hour), End: now.Add(700 * time.Hour), Next: now.Add(1400 * time.Hour)}}
	wants(700 * time.Hour)
	a = ask(1, "k")
	wants(700 * time.Hour) // another limit of the item does not shorten its life
	a = ask(50, "k")
	wants(5200 * time.Hour) // until the bucket is full
}
