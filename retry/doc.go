// Package retry decides whether and when a call is repeated, and limits the retries of an upstream.
//
// Config.Decide decides about one failed attempt. It reads no clock, does not wait and has no state. Config.Delay is the backoff
// alone. A Purse, which is a Budget or a Quota, bounds the load that retries add to an upstream. Jitter only distributes retries
// over time, while a purse reduces their number. A GaveUpError has the reason why a call was not repeated, and the upstream's
// last error.
//
// The loop that sends, waits and settles is in the root package.
package retry
