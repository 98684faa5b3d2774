package notify_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe/notify"
)

func Example() {
	phone := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Priority"), r.Header.Get("Title"))
	}))
	defer phone.Close()

	topic, err := notify.NewNtfy(notify.Ntfy{URL: notify.Secret(phone.URL), Topic: "alerts"})
	if err != nil {
		panic(err)
	}
	n, err := notify.New(notify.Config{Targets: []notify.Target{topic}})
	if err != nil {
		panic(err)
	}
	store := n.Fleet() // give it to limit.NewFleet
	store.Fallback(limit.FallbackEvent{Away: true})
	store.Fallback(limit.FallbackEvent{Away: false})
	if err := n.Close(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4 weir: shared store is away
	// 3 weir: resolved: shared store is away
}
