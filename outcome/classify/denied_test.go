package classify

import (
	"strconv"
	"testing"

	"github.com/seed1158cd35/weir/outcome"
)

// TestMessageThatDeniesThrottleIsNone reads 403 responses that contain the words of a throttle in another sense.
func TestMessageThatDeniesThrottleIsNone(t *testing.T) {
	throttles := []string{
		"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
		"API rate limit exceeded for user ID 1. (But here's the good news: Authenticated requests get a higher rate limit.)",
		"Rate limit for users that do not have a subscription exceeded",
		"You cannot make more requests: rate limit exceeded",
		"Your request could not be processed because the rate limit has been exceeded.",
		"Request cannot be served. Request limit exceeded.",
		"You may have exceeded the rate limit",
		"Rate limit exceeded: no more requests today",
		"The API rate\nlimit was exceeded. Do not retry. Rate limit exceeded.",
		"You've been rate limited",
		"You have exceeded your rate limit.",
		"You can't call this now, you are being rate limited.",
		"UserRateLimit exceeded",
		"Access denied. Too many requests.",
		"Not authorized, rate limit exceeded",
		"The rate limit is not exceeded for reads. The rate limit is exceeded for writes.",
		"Your requests are not lost; your requests are being throttled.",
		"<p>You are being <b>rate limited</b>.</p>",
		"Error 1015: You are being rate limited",
	}
	refusals := []string{
		"rate limit not exceeded",
		"Rate limit has not been exceeded, but the key is wrong",
		"The rate limit was never reached.",
		"rate limit hasn't been exceeded",
		"Your rate limit isn\u2019t exceeded",
		"no rate limit was exceeded",
		"No rate limit has been reached; you lack the scope repo.",
		"You have not exceeded a secondary rate limit.",
		"You are not rate limited",
		"You aren't being rate limited; the token is revoked",
		"Access denied without triggering abuse detection",
		"Rate limit: 40 of 5000 used. The upload exceeds 10 MB.",
		"Unauthenticated requests may be throttled",
		"Sign in to avoid being rate limited.",
		"If you are rate limited, read the headers. This token has no access.",
		"Forbidden. When the rate limit is exceeded the status is 429.",
		"Corporate limit exceeded",
		"A separate limit was exceeded: seats",
		"Your role is not allowed on a rate limited endpoint",
		"rate_limit_exceeded: false, scope_missing: true",
		`rate_limited="no", reason="scope"`,
		"rate limited = false",
		"Unthrottled requests need another plan: requests are unthrottled",
		"Not too many requests: forbidden.",
		"You have not exceeded your rate limit",
		"The rate limit is far from being exceeded",
		"The request was throttled: false",
		"rate limit no longer exceeded",
	}
	for _, form := range []struct{ before, after string }{{"", ""}, {`{"message":`, `}`}, {`{"error":{"message":`, `}}`}} {
		check := func(message string, want outcome.Class) {
			body := message
			if form.before != "" {
				body = form.before + strconv.Quote(message) + form.after
			}
			if got := HTTP(Response{Status: 403, Body: []byte(body), Now: now}); got.Class != want {
				t.Errorf("%s: %v, want %v", body, got.Class, want)
			}
		}
		for _, m := range throttles {
			check(m, outcome.Throttled)
		}
		for _, m := range refusals {
			check(m, outcome.Rejected)
		}
	}
}
