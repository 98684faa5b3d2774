package classify

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

func openAIError(kind, code, message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, kind, code)
}

// Responses of language model providers, one after the other, as observed or documented in November 2026. http_test.go and
// aws_test.go have further ones.
func TestProvidersOfLanguageModels(t *testing.T) {
	requests := outcome.Level{Name: "requests", Limit: 200, Remaining: 0, Reset: 24 * time.Hour}
	run(t, []answer{
		{
			name: "OpenAI, requests per day, in headers alone", status: 429,
			header: headers("x-ratelimit-limit-requests: 200", "x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 24h0m0s"),
			body:   openAIError("requests", "rate_limit_exceeded", "Rate limit reached."),
			want:   limits(after(quota(throttle("rate_limit_exceeded")), 24*time.Hour), requests),
		},
		{
			name: "OpenAI, requests per day, with a hint", status: 429,
			header: headers("x-ratelimit-limit-requests: 200", "x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 24h0m0s", "Retry-After: 432"),
			want:   limits(after(quota(throttle("429")), 432*time.Second), requests),
		},
		{
			name: "OpenAI, requests per day, in words", status: 429,
			body: openAIError("requests", "rate_limit_exceeded", "Rate limit reached for gpt-4o in organization org-1 on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s."),
			want: after(quota(throttle("rate_limit_exceeded")), 432*time.Second),
		},
		{
			name: "OpenAI, a minute's limit that will be full in a minute", status: 429,
			header: headers("x-ratelimit-limit-requests: 200", "x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 1m0s"),
			want:   limits(throttle("429"), outcome.Level{Name: "requests", Limit: 200, Reset: time.Minute}),
		},
		{
			name: "OpenAI, a day's limit that is not the one that was reached", status: 429,
			header: headers("x-ratelimit-limit-requests: 200", "x-ratelimit-remaining-requests: 3", "x-ratelimit-reset-requests: 23h0m0s", "retry-after-ms: 900"),
			want: limits(after(throttle("429"), 900*time.Millisecond),
				outcome.Level{Name: "requests", Limit: 200, Remaining: 3, Reset: 23 * time.Hour}),
		},
		{
			name: "OpenAI, more than there ever is", status: 429,
			body: openAIError("tokens", "rate_limit_exceeded", "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully."),
			want: reject("rate_limit_exceeded"),
		},
		{name: "OpenAI, no reset, no hint", status: 429, body: openAIError("tokens", "rate_limit_exceeded", "Rate limit reached."), want: throttle("rate_limit_exceeded")},
		{name: "OpenAI, an account that is not active", status: 429, body: openAIError("billing_not_active", "billing_not_active", "m"), want: advised(quota(throttle("billing_not_active")), outcome.NotAgain)},
		{name: "OpenAI, a server's error", status: 500, body: `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`, want: fails("server_error")},
		{
			name: "Azure, whole seconds", status: 429,
			header: headers("retry-after-ms: 1200", "Retry-After: 2", "x-ratelimit-limit-tokens: 1000", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 55"),
			body:   `{"error":{"code":"too_many_requests","message":"Too many requests"}}`,
			want:   limits(after(throttle("too_many_requests"), 1200*time.Millisecond), outcome.Level{Name: "tokens", Limit: 1000, Reset: 55 * time.Second}),
		},
		{name: "Azure, the status for a code", status: 429, header: headers("Retry-After: 6"), body: `{"error":{"code":"429","message":"Requests have exceeded call rate limit. Please retry after 6 seconds."}}`, want: after(throttle("429"), 6*time.Second)},
		{name: "a server's error that is only an event", status: 500, body: `{"type":"error","code":"server_error","message":"m"}`, want: fails("server_error")},

		{
			name: "Anthropic, reset by RFC 3339", status: 429,
			header: headers("retry-after: 12", "anthropic-ratelimit-output-tokens-limit: 8000", "anthropic-ratelimit-output-tokens-remaining: 0", "anthropic-ratelimit-output-tokens-reset: 2026-11-20T12:00:30Z"),
			body:   `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed the rate limit of your organization of 8000 output tokens per minute."}}`,
			want:   limits(after(throttle("rate_limit_error"), 12*time.Second), outcome.Level{Name: "output-tokens", Limit: 8000, Reset: 30 * time.Second}),
		},
		{name: "Anthropic on Azure says nothing", status: 429, body: `{"type":"error","error":{"type":"rate_limit_error"}}`, want: throttle("rate_limit_error")},
		{name: "Anthropic, per day", status: 429, body: `{"type":"error","error":{"type":"rate_limit_error","message":"... of 1000000 tokens per day"}}`, want: quota(throttle("rate_limit_error"))},
		{
			name: "Anthropic, a subscription's week", status: 429,
			header: headers("anthropic-ratelimit-unified-status: rejected", "anthropic-ratelimit-unified-reset: 1795348800"),
			body:   `{"type":"error","error":{"type":"rate_limit_error","message":"m"}}`,
			want:   limits(after(quota(throttle("rate_limit_error")), 48*time.Hour), outcome.Level{Name: "unified", Reset: 48 * time.Hour}),
		},
		{
			name: "Anthropic, a subscription that is back soon", status: 429,
			header: headers("anthropic-ratelimit-unified-status: rejected", "anthropic-ratelimit-unified-reset: 1795176060"),
			want:   limits(after(throttle("429"), time.Minute), outcome.Level{Name: "unified", Reset: time.Minute}),
		},
		{name: "Anthropic, overloaded", status: 529, body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, want: fails("overloaded_error")},
		{name: "Anthropic, too slow", status: 504, body: `{"type":"error","error":{"type":"timeout_error"}}`, want: fails("timeout_error")},
		{name: "Anthropic, no credit", status: 400, body: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, want: reject("invalid_request_error")},

		{
			name: "a day by the standard", status: 429,
			header: headers(`RateLimit-Policy: "burst";q=100;w=60, "daily";q=1000;w=86400`, `RateLimit: "burst";r=50;t=30, "daily";r=0;t=9000`),
			want: limits(after(quota(throttle("429")), 9000*time.Second),
				outcome.Level{Name: "burst", Limit: 100, Remaining: 50, Reset: 30 * time.Second, Window: time.Minute},
				outcome.Level{Name: "daily", Limit: 1000, Reset: 9000 * time.Second, Window: 24 * time.Hour}),
		},

		{name: "Gemini, after a short while", status: 429, body: `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"36s"}]}}`, want: after(throttle("RESOURCE_EXHAUSTED"), 36*time.Second)},
		{name: "Gemini, a day in an array", status: 429, body: "[" + geminiDay + "]", want: after(quota(throttle("RESOURCE_EXHAUSTED")), 20*time.Hour)},
		{name: "Gemini, a day, by the answer's own clock", status: 429, header: headers("Date: Sat, 21 Nov 2026 07:59:00 GMT"), body: geminiDay, want: after(quota(throttle("RESOURCE_EXHAUSTED")), time.Minute)},
		{name: "Gemini, broken", status: 500, body: `{"error":{"code":500,"message":"m","status":"INTERNAL"}}`, want: fails("INTERNAL")},
		{name: "Gemini, too slow", status: 504, body: `{"error":{"code":504,"status":"DEADLINE_EXCEEDED"}}`, want: fails("DEADLINE_EXCEEDED")},

		{name: "Bedrock, a cold model, in a stream", status: 500, body: `{"code":"modelNotReadyException"}`, want: undone(fails("modelNotReadyException"))},
		{name: "Bedrock, a day, in a stream", status: 429, body: `{"code":"throttlingException","message":"Too many tokens per day, please wait before trying again."}`, want: quota(throttle("throttlingException"))},
		{name: "Bedrock, requests", status: 429, header: headers("x-amzn-ErrorType: ThrottlingException:http://internal.amazon.com/coral/"), body: `{"message":"Too many requests, please wait before trying again."}`, want: throttle("ThrottlingException")},
		{name: "Bedrock, unavailable", status: 503, header: headers("x-amzn-ErrorType: ServiceUnavailableException"), want: fails("ServiceUnavailableException")},
		{name: "Bedrock, an error of the server", status: 500, header: headers("x-amzn-ErrorType: InternalServerException"), want: fails("InternalServerException")},
		{name: "Bedrock, a model that streams and fails", status: 424, header: headers("x-amzn-ErrorType: ModelStreamErrorException"), body: `{"message":"m","originalStatusCode":500}`, want: fails("ModelStreamErrorException")},
		{name: "Bedrock, a conflict", status: 400, header: headers("x-amzn-ErrorType: ConflictException"), want: reject("ConflictException")},
		{name: "Bedrock, a mistake", status: 400, header: headers("x-amzn-ErrorType: ValidationException"), want: reject("ValidationException")},
	})
}

// Gemini counts days in a time zone where two days of the year have 23 and 25 hours.
func TestTheDayOfGeminiIsThatOfCalifornia(t *testing.T) {
	for at, want := range map[string]time.Duration{
		"2026-11-01T07:00:00Z": 25 * time.Hour, // midnight there, and clocks go back
		"2026-03-08T08:00:00Z": 23 * time.Hour,
		"2026-07-01T06:59:59Z": time.Second,
	} {
		base, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		got := HTTP(Response{Status: 429, Body: []byte(geminiDay), Now: base}).Hint
		if !got.Quota || got.After != want {
			t.Errorf("at %s: %+v, want %v", at, got, want)
		}
	}
	if got := HTTP(Response{Status: 429, Body: []byte(geminiDay)}).Hint; got.Said || !got.Quota {
		t.Errorf("without a clock: %+v", got)
	}
}
