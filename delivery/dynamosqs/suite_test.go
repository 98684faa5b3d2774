package dynamosqs_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/deliverytest"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

// tables is the emulator of DynamoDB.
var tables *servers.Server

func TestMain(m *testing.M) {
	watchdog.Start()
	code := servers.With(func(t servers.TB) int {
		tables = servers.Dynalite(t)
		return m.Run()
	})
	os.Exit(code)
}

var names atomic.Int64

// name is that of a table that is not there yet.
func name() string { return fmt.Sprintf("weir-%d", names.Add(1)) }

// httpClient leaves no goroutine at a connection, by which time in a bubble would stand.
func httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

func ofTables() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "eu-central-1", BaseEndpoint: aws.String(tables.Endpoint()), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: httpClient()})
}

// open is a store in a table of its own.
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
	deliverytest.Test(t, deliverytest.Engine{
		In:    func(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) },
		Open:  func(t *testing.T) delivery.Queue { return open(t, dynamosqs.Options{Table: ofTables(), Name: name()}) },
		Sleep: time.Sleep,
	})
}
