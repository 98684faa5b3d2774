// Package weir keeps a program inside the limits of the APIs it calls, retries
// what is worth retrying, and stops calling what is down.
//
// A Policy says what is allowed, as plain data. New makes an Upstream of it,
// which is shared by everyone who calls that API. Do makes a call under it, for
// any function; httpx.NewTransport does the same for an http.Client; Begin is
// for loops of one's own, Acquire and Try for single attempts, each of which is reported.
//
//	s3, err := weir.New("s3", weir.Policy{
//		Limits: []limit.Limit{{Name: "put", Rate: bucket.Rate{Amount: 3000, Per: time.Second}}},
//	}, weir.Options{})
//	...
//	out, err := weir.Do(ctx, s3, weir.Call{Operation: "put", Safe: true}, func(ctx context.Context) (*Output, error) {
//		return client.Put(ctx, in)
//	})
//
// A call goes this way: the breaker is asked, all limits are taken together, the
// call is sent under its own timeout, its outcome is classified once, every gate
// hears of it, and retry decides whether there is another attempt.
package weir
