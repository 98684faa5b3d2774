// Package httpx sends HTTP requests under the policy of an upstream. Transport is an http.RoundTripper that waits for its turn
// and retries.
//
//	client := &http.Client{Transport: httpx.NewTransport(api, nil)}
//
// It is a loop over a weir.Run that also handles bodies. A request body is kept to be sent again (Replay). A body that stalls is
// ended, in either direction. A response body that reports its use at its end settles the permit then (Meter).
//
// A Dialect implements an API beyond plain HTTP. A sidecar's proxy uses it. Implementations must not depend on the sidecar.
package httpx
