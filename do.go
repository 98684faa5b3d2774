package weir

import "context"

// Do makes a call under the upstream's policy: it waits for its turn, calls fn,
// and calls it again where that is worth it and safe. fn is given a context that
// ends with the attempt's timeout.
//
// The error is that of the last attempt: as it is if weir had nothing to do with
// it, in a *retry.GaveUpError if there could have been another attempt but is
// none. If no attempt was made at all it is a *Refusal, or the cause of ctx's
// end. A call made within an attempt of another Do, with its context, makes one
// attempt only: it is the outer one that repeats. An error that implements outcome.Classifier says itself what it means.
func Do[T any](ctx context.Context, u *Upstream, c Call, fn func(context.Context) (T, error)) (v T, err error) {
	r := u.Begin(ctx, c)
	defer r.End()
	for r.Next() {
		v, err = fn(r.Context())
		r.Report(r.Classify(err), err)
	}
	return v, r.Err()
}
