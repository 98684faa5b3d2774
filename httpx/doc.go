// Package httpx sends HTTP requests under the policy of an upstream: Transport is an
// http.RoundTripper that waits for its turn and retries by itself.
//
//	client := &http.Client{Transport: httpx.NewTransport(api, nil)}
//
// It is a loop over a weir.Run, with what bodies need besides: one that is to be sent again is
// kept (Replay), one that stops coming ends, in either direction, and one that says at its end
// what was used settles its permit then (Meter).
//
// A Dialect is what an API speaks beyond HTTP. A sidecar's proxy serves it; what implements one
// stands below the sidecar.
package httpx
