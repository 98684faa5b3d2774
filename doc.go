// Package weir keeps a program within the limits of the APIs that it calls. It retries calls that can succeed later,
// and stops calls to an upstream that is down.
//
// A Policy states what is allowed, as plain data. New makes an Upstream from it, which all callers of that API share.
// Do makes a call under the policy, for any function. httpx.NewTransport does the same for an http.Client. Begin is
// for programs that make attempts in their own loop. Acquire and Try admit single attempts, and the caller reports
// each of them.
//
//	s3, err := weir.New("s3", weir.Policy{
//		Limits: []limit.Limit{{Name: "put", Rate: bucket.Rate{Amount: 3000, Per: time.Second}}},
//	}, weir.Options{})
//	...
//	out, err := weir.Do(ctx, s3, weir.Call{Operation: "put", Safe: true}, func(ctx context.Context) (*Output, error) {
//		return client.Put(ctx, in)
//	})
//
// For each attempt weir asks the breaker, takes the cost from all limits together and sends the call under its own
// timeout. It classifies the outcome once and reports it to every gate. Then the retry rules decide whether another
// attempt follows.
package weir
