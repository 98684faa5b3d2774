// Package retry decides whether a call is tried again, when, and at whose
// expense.
//
// Config.Decide looks at one failed attempt and answers; it reads no clock,
// waits for nothing and remembers nothing. Config.Delay is the backoff alone. A
// Purse, which is a Budget or a Quota, bounds what retries add to the load of
// an upstream: jitter spreads retries over time, but only a purse makes them
// fewer. A GaveUpError says why a call was not tried again and keeps the last
// error of the upstream.
//
// The loop that sends, waits and settles is in the root package.
package retry
