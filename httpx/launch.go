package httpx

import (
	"context"
	"net/http"
)

type launchKey struct{}

// WithLaunch is ctx for a request of which somebody wants to know when it has its turn: a
// Transport calls fn for each attempt after every gate has let it through, right before it is
// sent. If fn returns an error nothing is sent, and the attempt ends with it; an error that is an
// outcome.Classifier says what the gates hear. Until the attempt has its answer, cancel ends it.
func WithLaunch(ctx context.Context, fn func(cancel context.CancelCauseFunc) error) context.Context {
	return context.WithValue(ctx, launchKey{}, fn)
}

// launch tells whoever wants to know that an attempt is sent.
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
