package weir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
)

// Event functions observe calls. They run on the goroutine of the call and should return quickly.
func ExampleEvents() {
	api, err := weir.New("api", weir.Policy{
		Operations: []weir.Operation{{Name: "list"}},
		Retry:      retry.Config{Attempts: 2, Base: time.Nanosecond, Cap: time.Nanosecond},
	}, weir.Options{Events: weir.Events{
		Retried: func(e weir.Retried) { fmt.Println("retried", e.Operation) },
		GaveUp:  func(e weir.GaveUp) { fmt.Println("gave up", e.Operation) },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = weir.Do(context.Background(), api, weir.Call{Operation: "list", Safe: true}, func(context.Context) (int, error) {
		return 0, errors.New("connection lost")
	})
	fmt.Println("failed:", err != nil)
	// Output:
	// retried list
	// gave up list
	// failed: true
}
