package weir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/retry"
)

// An open breaker refuses calls, so that a failing upstream is left alone.
func ExampleDo_breaker() {
	api, err := weir.New("api", weir.Policy{
		Retry:   retry.Config{Attempts: 1},
		Breaker: breaker.Config{Consecutive: 2, Open: time.Hour},
	}, weir.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		_, err := weir.Do(context.Background(), api, weir.Call{}, func(context.Context) (int, error) {
			return 0, errors.New("out of order")
		})
		var refusal *weir.Refusal
		fmt.Println("refused:", errors.As(err, &refusal) && refusal.Reason == weir.CircuitOpen)
	}
	// Output:
	// refused: false
	// refused: false
	// refused: true
}
