package httpx

import (
	"context"
	"net/http"
)

type launchKey struct{}

// WithLaunch returns a context for a request that must be observed when it is sent. A Transport calls fn for each attempt after
// every gate has admitted it, right before it is sent. If fn returns an error, the request is not sent and the attempt ends with
// that error. An error that is an outcome.Classifier determines the outcome for the gates. Until the attempt has its response,
// cancel ends it.
func WithLaunch(ctx context.Context, fn func(cancel context.CancelCauseFunc) error) context.Context {
	return context.WithValue(ctx, launchKey{}, fn)
}

func launch(ctx context.Context, cancel context.CancelCauseFunc, req *http.Request) error {
	fn, ok := ctx.Value(launchKey{}).(func(context.CancelCauseFunc) error)
	if !ok {
		return nil
	}
	err := fn(cancel)
	if err != nil && req.Body != nil {
		_ = req.Body.Close()
	}
	return err
}
