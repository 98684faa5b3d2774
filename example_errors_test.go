package weir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// errNotFound is an error of the caller: it is not repeated and does not count against the upstream.
type errNotFound struct{ name string }

func (e errNotFound) Error() string { return e.name + " not found" }

func (errNotFound) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Rejected, Code: "not_found"}
}

// An error that implements outcome.Classifier decides whether its call is repeated. A call that failed in all attempts
// returns a *retry.GaveUpError, which unwraps to the last error.
func ExampleDo_errors() {
	api, err := weir.New("api", weir.Policy{
		Retry: retry.Config{Attempts: 2, Base: time.Nanosecond, Cap: time.Nanosecond},
	}, weir.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, failure := range []error{errNotFound{"Ada"}, errors.New("connection lost")} {
		_, err := weir.Do(context.Background(), api, weir.Call{Safe: true}, func(context.Context) (int, error) { return 0, failure })
		var gaveUp *retry.GaveUpError
		if errors.As(err, &gaveUp) {
			fmt.Println(gaveUp.Attempts, "attempts, last:", gaveUp.Last)
		}
		fmt.Println("unwraps:", errors.Is(err, failure))
	}
	// Output:
	// unwraps: true
	// 2 attempts, last: connection lost
	// unwraps: true
}
