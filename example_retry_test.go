package weir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
)

// A call is repeated after a failure if it is safe to repeat.
func ExampleDo_retry() {
	api, err := weir.New("api", weir.Policy{
		Retry: retry.Config{Attempts: 3, Base: time.Nanosecond, Cap: time.Nanosecond},
	}, weir.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	attempts := 0
	user, err := weir.Do(context.Background(), api, weir.Call{Safe: true}, func(context.Context) (string, error) {
		if attempts++; attempts < 3 {
			return "", errors.New("connection lost")
		}
		return "Ada", nil
	})
	fmt.Println(user, err, "after", attempts, "attempts")
	// Output: Ada <nil> after 3 attempts
}
