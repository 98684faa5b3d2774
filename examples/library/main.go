// Command library uses weir in a Go program: ten workers share an API that allows 20 requests a second, and the API refuses
// none of their requests.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	defer server.Close()

	api, err := weir.New("api", weir.Policy{
		Limits: []limit.Limit{{Name: "requests", Rate: bucket.Rate{Amount: 20, Per: time.Second, Burst: 5}}},
	}, weir.Options{})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: httpx.NewTransport(api, nil)}

	start := time.Now()
	var workers sync.WaitGroup
	for worker := range 10 {
		workers.Go(func() {
			for range 4 {
				resp, err := client.Get(server.URL)
				if err != nil {
					fmt.Println(worker, err) // a *weir.Refusal, or the last error
					continue
				}
				_ = resp.Body.Close()
			}
		})
	}
	workers.Wait()
	fmt.Printf("40 calls in %.1fs: 5 at once, the others at 20 a second\n", time.Since(start).Seconds())
	return nil
}
