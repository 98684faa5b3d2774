// Package classify says how an attempt ended: it turns an HTTP answer, or the
// error of a call that got none, into the one [outcome.Outcome] that retry,
// breaker and limits read.
//
// [HTTP] reads the status, the hint headers (Retry-After and its relatives,
// x-should-retry, rate limit headers) and, if it is given one, a prefix of the
// body of an error: AWS codes in JSON and XML, and the errors of OpenAI,
// Anthropic, Gemini and ntfy. [NeedsBody] says beforehand whether reading that
// prefix can change the answer. [Error] judges errors. [Rules] lets a policy
// overrule the verdict for statuses and codes. gRPC is in classify/grpcclass.
//
// Nothing here reads a clock, keeps state or trusts its input: every function
// is pure, safe for concurrent use, and returns for any bytes. No hint is ever
// negative or longer than [MaxAfter].
//
// An error event inside a stream that began with status 200 is classified by
// its data alone: pass it as the Body of a Response with status 500.
//
// docs/reference/classification.md lists every rule with its source.
package classify
