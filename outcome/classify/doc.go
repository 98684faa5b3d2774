// Package classify determines the result of an attempt. It converts an HTTP response, or the error of a call without a response,
// to an [outcome.Outcome] for retries, breakers and limits.
//
// [HTTP] reads the status and the hint headers (Retry-After and similar ones, x-should-retry, rate limit headers). It also reads
// a prefix of an error's body, if present: AWS codes in JSON and XML, and the errors of OpenAI, Anthropic, Gemini and ntfy.
// [NeedsBody] reports beforehand whether that prefix can change the result. [Error] classifies errors. [Rules] lets a policy
// override the class for statuses and codes. gRPC is in classify/grpcclass.
//
// The package reads no clock, keeps no state and does not trust its input: every function is pure, safe for concurrent use, and
// accepts any bytes. A hint is never negative or longer than [MaxAfter].
//
// To classify an error event inside a stream that began with status 200, pass its data as the Body of a Response with status 500.
//
// docs/reference/classification.md lists every rule with its source.
package classify
