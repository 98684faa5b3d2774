package weirprom_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed1158cd35/weir"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
)

func Example() {
	registry := prometheus.NewRegistry()
	metrics := weirprom.New(registry)
	s3, err := weir.New("s3", weir.Policy{}, weir.Options{Events: metrics.Events()})
	if err != nil {
		panic(err)
	}
	metrics.Watch(s3)
	_, _ = weir.Do(context.Background(), s3, weir.Call{}, func(context.Context) (string, error) { return "done", nil })

	admin := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	page := httptest.NewRecorder()
	admin.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, `weir_calls_total{operation="default",result="ok"`) || strings.HasPrefix(line, "weir_breakers") {
			fmt.Print(line)
		}
	}
	// Output:
	// weir_breakers{state="closed",upstream="s3"} 1
	// weir_breakers{state="half-open",upstream="s3"} 0
	// weir_breakers{state="open",upstream="s3"} 0
	// weir_calls_total{operation="default",result="ok",upstream="s3"} 1
}

func ExampleMetrics_Forget() {
	registry := prometheus.NewRegistry()
	metrics := weirprom.New(registry)
	s3, err := weir.New("s3", weir.Policy{}, weir.Options{Events: metrics.Events()})
	if err != nil {
		panic(err)
	}
	metrics.Watch(s3)
	metrics.Forget("s3")

	left, _ := registry.Gather()
	fmt.Println(len(left), "metrics are left")
	// Output: 0 metrics are left
}
