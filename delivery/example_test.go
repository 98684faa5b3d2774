package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// A request is on disk when Deliver returns. The worker sends it under the upstream's policy.
func ExampleWorker_Deliver() {
	arrived := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.Method + " " + r.URL.Path }))
	defer api.Close()
	at, _ := url.Parse(api.URL)
	dir, _ := os.MkdirTemp("", "deliveries")
	defer os.RemoveAll(dir)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	queue, err := sqlite.Open(ctx, filepath.Join(dir, "deliveries.db"), sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer queue.Close()
	worker := &delivery.Worker{Queue: queue}
	ntfy, err := weir.New("ntfy", weir.Policy{}, weir.Options{Deliverer: worker})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker.Sender = func(string) delivery.Sender { return &delivery.HTTP{Upstream: ntfy, URL: at} }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		worker.Run(ctx)
	}()

	receipt, err := ntfy.Deliver(ctx, weir.Request{Method: "POST", Path: "/builds", Body: []byte("build 81 is done"), Key: "build-81"})
	fmt.Println(receipt.Fresh, err)
	fmt.Println(<-arrived)
	stop()
	<-ended
	// Output:
	// true <nil>
	// POST /builds
}
