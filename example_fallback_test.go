package weir_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
)

// A fallback is ordinary Go. Package cascade orders several sources.
func ExampleDo_fallback() {
	api, err := weir.New("api", weir.Policy{Retry: retry.Config{Attempts: 1}}, weir.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	yesterday := "sunny"
	weather, err := weir.Do(context.Background(), api, weir.Call{Safe: true}, func(context.Context) (string, error) {
		return "", errors.New("503 Service Unavailable")
	})
	if err != nil {
		weather = yesterday
	}
	fmt.Println(weather)
	// Output: sunny
}
