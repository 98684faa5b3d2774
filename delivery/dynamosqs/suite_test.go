package dynamosqs_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/deliverytest"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

// tables and queues are the emulators of DynamoDB and SQS.
var tables, queues *servers.Server

func TestMain(m *testing.M) {
	watchdog.Start()
	code := servers.With(func(t servers.TB) int {
		tables, queues = servers.Dynalite(t), servers.Fauxqs(t)
		return m.Run()
	})
	os.Exit(code)
}

var names atomic.Int64

func name() string { return fmt.Sprintf("weir-%d", names.Add(1)) }

// httpClient returns a client whose connections leave no goroutines behind. Otherwise the time of a bubble would stop.
func httpClient() *http.Client {
	return &http.Client{Transport: held{&http.Transport{DisableKeepAlives: true}}}
}

// held keeps the clock of a bubble from advancing during a request. Otherwise it would advance as soon as all
// goroutines of the bubble wait, and the request would time out.
type held struct{ base http.RoundTripper }

// outside belongs to no bubble, so time does not advance while a goroutine waits for it.
var outside = make(chan struct{})

func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
	over := make(chan struct{})
	go func() {
		select {
		case <-outside:
		case <-over:
		}
	}()
	resp, err := h.base.RoundTrip(r)
	if err != nil {
		close(over)
		return nil, err
	}
	resp.Body = &heldBody{resp.Body, sync.OnceFunc(func() { close(over) })}
	return resp, nil
}

// A heldBody lets time advance when it is closed.
type heldBody struct {
	io.ReadCloser
	over func()
}

func (b *heldBody) Close() error {
	defer b.over()
	return b.ReadCloser.Close()
}

func ofTables() *dynamodb.Client { return at(tables) }

func at(s *servers.Server) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "eu-central-1", BaseEndpoint: aws.String(s.Endpoint()), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: httpClient()})
}

func ofQueues() *sqs.Client {
	return sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(queues.Endpoint()), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: httpClient()})
}

// both returns options with a new table and a queue of the same name.
func both() dynamosqs.Options {
	n := name()
	return dynamosqs.Options{Table: ofTables(), Name: n, Queue: ofQueues(), QueueURL: queues.Endpoint() + "/000000000000/" + n}
}

// open returns a store with its own table.
func open(t testing.TB, o dynamosqs.Options) *dynamosqs.Store {
	t.Helper()
	s, err := dynamosqs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Init(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQueue(t *testing.T) {
	for kind, options := range map[string]func() dynamosqs.Options{
		"TableAndQueue": both,
		"TableAlone":    func() dynamosqs.Options { return dynamosqs.Options{Table: ofTables(), Name: name()} },
	} {
		t.Run(kind, func(t *testing.T) {
			deliverytest.Test(t, deliverytest.Engine{
				In: func(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) },
				Open: func(t *testing.T) delivery.Queue {
					o := options()
					o.MaxSize = 4 << 40 // for the declared sizes of large bodies
					return open(t, o)
				},
				Bounded: func(t *testing.T, most, bytes int64) func() delivery.Queue {
					o := options()
					o.MaxStored, o.MaxSize = most, bytes
					return func() delivery.Queue { return open(t, o) }
				},
				Sleep: time.Sleep,
			})
		})
	}
}
