package classify

import (
	"strconv"
	"strings"
	"testing"
	"time"

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

// TestTimeAloneIsNoThrottle reads refusals with the time of something else: a license, a password, a trial.
func TestTimeAloneIsNoThrottle(t *testing.T) {
	for i := range Table {
		r := &Table[i]
		for status, want := range map[int]outcome.Class{400: outcome.Rejected, 401: outcome.Rejected, 402: outcome.Rejected, 403: outcome.Rejected, 404: outcome.Rejected, 409: outcome.Rejected, 500: outcome.Failed, 503: outcome.Failed} {
			resp := Response{Status: status, Now: now}
			switch {
			case r.Place == JSON && r.Means == Reset:
				resp.Body = []byte(nested("license."+strings.TrimPrefix(r.Name, "*."), r.Example))
				if !strings.HasPrefix(r.Name, "*.") {
					resp.Body = []byte(nested(r.Name, r.Example))
				}
			case r.Place == Header && (r.Means == Reset || r.Means == Full) && r.Group != structured && r.Group != unified:
				resp.Header = headers(strings.Replace(r.Name, "*", "X-License-", 1) + ": " + r.Example)
			case r.Place == Message:
				resp.Body = []byte(nested("message", "The trial has ended. "+r.Name+" "+r.Example))
			default:
				continue
			}
			if o := HTTP(resp); o.Class != want {
				t.Errorf("%d %v %s: %+v", status, resp.Header, resp.Body, o)
			}
		}
	}
	for _, body := range []string{
		`{"error":"forbidden","retry_after":0}`, `{"error":"forbidden","Retry-After":"0"}`,
		`{"error":"forbidden","headers":{"X-RateLimit-Reset":"1795176004"}}`,
		`{"error":"forbidden","headers":{"X-RateLimit-Remaining":"7","X-RateLimit-Reset":"1795176004"}}`,
		`<error><message>License expired</message><reset_at>2026-11-20T12:00:04Z</reset_at></error>`,
	} {
		if o := HTTP(Response{Status: 403, Body: []byte(body), Now: now}); o.Class != outcome.Rejected {
			t.Errorf("%s: %+v", body, o)
		}
	}
	for _, body := range []string{
		`{"error":"slow down","retry_after":4}`, `{"message":"m","retryIn":"4s"}`, `<error><RetryAfter>4</RetryAfter></error>`,
		`{"error":"Rate limit exceeded","reset_at":"2026-11-20T12:00:04Z"}`, `{"code":"rate_limited","resets_at":1795176004}`,
		`{"error":"m","headers":{"Retry-After":"4"}}`, `{"error":"m","headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795176004"}}`,
	} {
		if o := HTTP(Response{Status: 403, Body: []byte(body), Now: now}); o.Class != outcome.Throttled || o.Hint.After != 4*time.Second {
			t.Errorf("%s: %+v", body, o)
		}
	}
}
