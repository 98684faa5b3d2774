package classify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// TestFormsOfAWait reads a wait of four seconds in every form, in every place for a value.
func TestFormsOfAWait(t *testing.T) {
	for _, v := range []string{
		"4", "4.0", "+4", " 4 ", "4 (a comment)", "20 Nov 2026 12:00:04+0000", "2026-Nov-20 12:00:04+0000 UTC", `"4"`, `'4'`, `" 4 "`, "4;comment", "4.000", "0.4e1", "4s", "4S", "4 s", "4sec", "4 secs", "4 seconds", "4 Seconds", "4.0s", `"4s"`, "4000ms", "4000 milliseconds",
		"4000000us", "4000000µs", "0m4s", "0h0m4s", "0 minutes and 4 seconds", "0 minutes, 4 seconds", "3s1000ms", "4, 3", "3, 4", "4,4",
		"PT4S", "pt4s", "PT4.0S", "PT4,0S", "PT0M4S", "P0DT4S", "P0Y0M0DT0H0M4S", `"PT4S"`, "00:00:04", "0:00:04", "00:00:04.000", "0.00:00:04",
		"1795176004", "1795176004.0", "1795176004000", "1795176004000.0", "1795176004000000", "1795176004000000000", `"1795176004"`, "1.795176004e9",
		"2026-11-20T12:00:04Z", "2026-11-20T12:00:04.000Z", "2026-11-20T12:00:04,000000000Z", "2026-11-20t12:00:04z", "2026-11-20 12:00:04", "2026-11-20 12:00:04 UTC", "2026-11-20T12:00:04", "2026-11-20T13:00:04+01:00",
		"2026-11-20T13:00:04+0100", "2026-11-20T13:00:04+01", "2026-11-20T07:30:04-04:30", "20261120T120004Z", `"2026-11-20T12:00:04Z"`, "2026-11-20T12:00:04 GMT",
		"Fri, 20 Nov 2026 12:00:04 GMT", "Friday, 20-Nov-26 12:00:04 GMT", "Fri Nov 20 12:00:04 2026", "fri, 20 nov 2026 12:00:04 gmt", "Fri, 20 Nov 2026 12:00:04 UTC", "Fri, 20 Nov 2026 12:00:04 +0000",
		"Fri, 20 Nov 2026 13:00:04 +0100", "20 Nov 2026 12:00:04 GMT", "Fri, 20-Nov-2026 12:00:04 GMT", "Friday, 20 Nov 2026 12:00:04 GMT", `"Fri, 20 Nov 2026 12:00:04 GMT"`, "Fri, 20 Nov 2026 12:00:04 Z",
		"4S", "4SECONDS", "4000MS", "0M4S", "0H0M4SEC", "4\u00a0s", "4s, 3s", "3s,4s", "2026/11/20 12:00:04", "4 more seconds",
		"Fri, 20 Nov 2026 12:00:04", "20 Nov 2026 12:00:04", "Fri, 20 Nov 2026 12:00:04 +00:00", "Fri, 20 Nov 2026 07:00:04 EST", "Fri, 20 Nov 2026 12:00:04.000 GMT", "Fri Nov 20 12:00:04 UTC 2026",
		"Fri Nov 20 2026 12:00:04 GMT+0000 (Coordinated Universal Time)", "Fri Nov 20 2026 13:00:04 GMT+0100 (Central European Standard Time)",
		"2026-11-20 12:00:04 +0000 UTC", "2026-11-20 12:00:04.000 +0000 UTC m=+0.1", "2026-11-20 13:00:04 +0100 CET", "2026-11-20T12:00:04Z[UTC]", "2026-11-20T13:00:04+01:00[Europe/Berlin]",
		"Fri, 20 Nov 2026 12:00:04 GMT, 3", "3, Fri, 20 Nov 2026 12:00:04 GMT", "Fri, 20 Nov 2026 12:00:03 GMT, Fri, 20 Nov 2026 12:00:04 GMT",
	} {
		if d, ok := waitOf(v, time.Second, now); !ok || d != 4*time.Second {
			t.Errorf("%q: %v, %v", v, d, ok)
		}
		for _, r := range []Response{
			{Header: headers("Retry-After: " + v)},
			{Header: headers("X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: "+v), Method: "list"},
			{Body: []byte(nested("parameters.retry_after", v))},
			{Body: []byte(nested("error.metadata.headers.Retry-After", v))},
		} {
			if r.Header != nil && r.Method == "list" {
				r.Method = ""
				if bytes.Contains([]byte(v), []byte(", ")) { // with several limits, the longest counts
					r.Header.Set("X-Rate-Limit-Remaining", "0, 0")
				}
			}
			r.Status, r.Now = 429, now
			if h := HTTP(r).Hint; !h.Said || h.After != 4*time.Second {
				t.Errorf("%q in %v %s: %+v", v, r.Header, r.Body, h)
			}
		}
	}
}

// TestNoWait ignores unreadable values.
func TestNoWait(t *testing.T) {
	for _, v := range []string{
		"", " ", `"`, `""`, "''", ";4", "-4", "-4s", "soon", "s", "four seconds", "4 parsecs", "4s later", "PT", "P", "P4", "PS", "PT4", "PT4D", "P4S", "PT1S1M", "00:60:00", "00:00:60", "12:00", "1:2:3", "2026-13-20T12:00:04Z",
		"2026-11-32T12:00:04Z", "2026-11-20X12:00:04Z", "2026-1120", "2026-11-20T12:00:04+", "2026-11-20T12:00:04 PST", "Fri, 20 Nov 2026", "Fri, 99 Nov 2026 12:00:04 GMT", "Mon, 31 Nov 2026 12:00:04 GMT", "20 Nov 12:00:04 GMT 26 27", "Nov 20 2026 13:00:04 PM", "Nov 20 2026 1200", "Nov 20 2026 12:00:04 XYZ", "2026/11-20", "Inf", "NaN", "0x4", "1_0", "4,,4", ",4", "4,", "1e", "true", "null",
	} {
		if d, ok := waitOf(v, time.Second, now); ok {
			t.Errorf("%q: %v", v, d)
		}
	}
}

func TestMillisecondsOfMoreThanABillion(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"1000000000":    1000000000 * time.Millisecond, // 11 days, and not an instant of 2001
		"1795176004":    4 * time.Second,
		"1795176004000": 4 * time.Second,
	} {
		if d, ok := waitOf(v, time.Millisecond, now); !ok || d != want {
			t.Errorf("%s: %v, %v", v, d, ok)
		}
	}
}

// TestWaitsInMessages reads observed messages.
func TestWaitsInMessages(t *testing.T) {
	for message, want := range map[string]time.Duration{
		"Please try again in 4 seconds.":                                       4 * time.Second,
		"Please try again in 4s.":                                              4 * time.Second,
		"Please try again in 1m2.5s. Visit https://example.com to learn more.": 62500 * time.Millisecond,
		"Please try again in 20ms.":                                            20 * time.Millisecond,
		"Please try again in 7m12s":                                            432 * time.Second,
		"Too Many Requests: retry after 35":                                    35 * time.Second,
		"You have exceeded the call rate limit. Please retry after 4 seconds.": 4 * time.Second,
		"Please retry after 1 minute and 5 seconds":                            65 * time.Second,
		"FLOOD_WAIT_4":                                                                                            4 * time.Second,
		"A wait of 4 seconds is required":                                                                         4 * time.Second,
		"Please try again in less than 4 seconds.":                                                                4 * time.Second,
		"Rate limit exceeded. Please try after 4 seconds.":                                                        4 * time.Second,
		"Please retry in 36.429760048s.":                                                                          36429760048,
		"API usage exceeded rate limit, try again in 15.25 secs":                                                  15250 * time.Millisecond,
		"Request was throttled. Expected available in 1154 seconds.":                                              1154 * time.Second,
		"Request was throttled. Expected available in 1,154 seconds.":                                             1154 * time.Second,
		"too many requests from this IP, more requests available in 17524 seconds":                                17524 * time.Second,
		"Complexity budget exhausted, query cost 222080 budget remaining 747 out of 10000000 reset in 16 seconds": 16 * time.Second,
		"Looks like you've been doing that a lot. Take a break for 14 minutes before trying again.":               14 * time.Minute,
		"you are doing that too much. try again in 9 minutes.":                                                    9 * time.Minute,
		"User-rate limit exceeded.  Retry after 2026-11-20T12:15:00.247Z (Forwarding rules)":                      15*time.Minute + 247*time.Millisecond,
		"Rate limit will reset in: 363":                                                                           363 * time.Second,
		"Please wait at least another 4 seconds":                                                                  4 * time.Second,
		"Please wait a minute before you retry":                                                                   time.Minute,
		"You can access API after 2026-Nov-20 12:00:04+0000 UTC":                                                  4 * time.Second,
		"Try again in an hour":                                                                                    time.Hour,
		"Limited until 2026-11-20 12:00:04 UTC.":                                                                  4 * time.Second,
		"Limited until Fri, 20 Nov 2026 12:00:04 GMT":                                                             4 * time.Second,
		"Try again at 2026-11-20T12:00:04Z, please":                                                               4 * time.Second,
		"Retry after 1795176004":                                                                                  4 * time.Second,
		"Wait 10 seconds. Then try again in 4 seconds.":                                                           4 * time.Second, // the more precise phrase
		"We waited 30 seconds; retry after some time; or retry after 4 seconds":                                   4 * time.Second,
	} {
		if d, _, ok := messageWait(lower(message), now); !ok || d != want {
			t.Errorf("%q: %v, %v, want %v", message, d, ok, want)
		}
	}
	for _, message := range []string{
		"", "Please wait a few minutes before you try again.", "Try again later", "retry after", "retry after 5 requests", "wait for it", "waiting 4 seconds", "try again in -4 seconds", "await 4 seconds", "Try again in 5-10 seconds",
	} {
		if d, _, ok := messageWait(lower(message), now); ok {
			t.Errorf("%q: %v", message, d)
		}
	}
}

// TestThrottlesOfAPIs reads observed responses.
func TestThrottlesOfAPIs(t *testing.T) {
	hinted := func(code string, d time.Duration) outcome.Outcome { return after(throttle(code), d) }
	run(t, []answer{
		{name: "Okta twice", status: 429, header: headers("X-Rate-Limit-Limit: 600", "X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: 1795176004", "X-Rate-Limit-Reset: 1795176004"),
			want: limits(hinted("429", 4*time.Second), outcome.Level{Limit: 600, Reset: 4 * time.Second})},
		{name: "Brave, of two limits one is used up", status: 429, header: headers("X-RateLimit-Limit: 1, 15000", "X-RateLimit-Policy: 1;w=1, 15000;w=2592000", "X-RateLimit-Remaining: 0, 1000", "X-RateLimit-Reset: 1, 1419704"),
			want: limits(hinted("429", time.Second), outcome.Level{Limit: 1, Reset: time.Second, Window: time.Second}, outcome.Level{Limit: 15000, Remaining: 1000, Reset: 1419704 * time.Second, Window: 2592000 * time.Second})},
		{name: "Docker Hub", status: 429, header: headers("ratelimit-limit: 100;w=21600", "ratelimit-remaining: 0;w=21600", "ratelimit-reset: 60"),
			want: limits(hinted("429", time.Minute), outcome.Level{Limit: 100, Reset: time.Minute, Window: 6 * time.Hour})},
		{name: "Together has a reset alone", status: 429, header: headers("x-ratelimit-reset: 4"), want: limits(hinted("429", 4*time.Second), outcome.Level{Remaining: -1, Reset: 4 * time.Second})},
		{name: "Reddit, in fractions", status: 403, header: headers("x-ratelimit-used: 600", "x-ratelimit-remaining: 0.0", "x-ratelimit-reset: 244"),
			want: limits(hinted("403", 244*time.Second), outcome.Level{Reset: 244 * time.Second})},
		{name: "Jira", status: 403, header: headers("RateLimit-Reason: jira-quota-global-based", "X-RateLimit-Reset: 2026-11-20T12:01Z"), want: limits(hinted("403", time.Minute), outcome.Level{Remaining: -1, Reset: time.Minute})},
		{name: "GitHub, a secondary limit", status: 403, header: headers("X-RateLimit-Limit: 30", "X-RateLimit-Remaining: 14", "X-RateLimit-Reset: 1999999999"), body: `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.","documentation_url":"https://docs.example"}`,
			want: limits(throttle("403"), outcome.Level{Limit: 30, Remaining: 14, Reset: 204823999 * time.Second})},
		{name: "GitHub, a refusal", status: 403, body: `{"message":"Resource not accessible by integration","documentation_url":"https://docs.github.com/rest/rate-limit/rate-limit"}`, want: reject("403")},
		{name: "Google", status: 403, body: `{"error":{"errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded","message":"User Rate Limit Exceeded"}],"code":403,"message":"User Rate Limit Exceeded"}}`, want: throttle("userRateLimitExceeded")},
		{name: "Google, with a status", status: 403, body: `{"error":{"errors":[{"domain":"usageLimits","reason":"rateLimitExceeded","message":"m"}],"code":403,"message":"m","status":"PERMISSION_DENIED"}}`, want: throttle("rateLimitExceeded")},
		{name: "Google, of a day", status: 403, body: `{"error":{"errors":[{"domain":"usageLimits","reason":"dailyLimitExceeded","message":"m"}],"code":403}}`, want: after(quota(throttle("dailyLimitExceeded")), 20*time.Hour)},
		{name: "YouTube", status: 403, body: `{"error":{"errors":[{"domain":"youtube.quota","reason":"quotaExceeded","message":"m"}],"code":403}}`, want: after(quota(throttle("quotaExceeded")), 20*time.Hour)},
		{name: "Google, a refusal", status: 403, body: `{"error":{"errors":[{"domain":"global","reason":"forbidden","message":"Forbidden"}],"code":403,"status":"PERMISSION_DENIED"}}`, want: reject("PERMISSION_DENIED")},
		{name: "Salesforce", status: 403, body: `[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"TotalRequests Limit exceeded."}]`, want: throttle("REQUEST_LIMIT_EXCEEDED")},
		{name: "Meta", status: 400, header: headers(`X-Business-Use-Case-Usage: {"1":[{"type":"ads_management","call_count":100,"estimated_time_to_regain_access":19}]}`), body: `{"error":{"message":"(#4) Application request limit reached","type":"OAuthException","is_transient":true,"code":4,"fbtrace_id":"E"}}`, want: hinted("OAuthException:4", 19*time.Minute)},
		{name: "Meta, another error", status: 400, body: `{"error":{"message":"m","type":"OAuthException","code":190,"fbtrace_id":"E"}}`, want: reject("OAuthException:190")},
		{name: "a page with tags", status: 429, header: headers("Content-Type: text/html"), body: "<html><body><p>Please try again in&nbsp;<b>4</b>&nbsp;seconds.</p></body></html>", want: hinted("429", 4*time.Second)},
		{name: "Telegram, a code", status: 420, header: headers("Content-Type: application/json"), body: `{"ok":false,"error_code":420,"description":"FLOOD_WAIT_4"}`, want: hinted("420", 4*time.Second)},
		{name: "a form", status: 429, header: headers("Content-Type: application/x-www-form-urlencoded"), body: "error=rate_limited&retry_after=4", want: hinted("429", 4*time.Second)},
		{name: "Google Maps", status: 200, method: "GET", header: headers("Content-Type: application/json"), body: `{"error_message":"You have exceeded your rate-limit for this API.","results":[],"status":"OVER_QUERY_LIMIT"}`, want: throttle("OVER_QUERY_LIMIT")},
		{name: "Google Maps without a result", status: 200, method: "GET", header: headers("Content-Type: application/json"), body: `{"error_message":"m","results":[],"status":"ZERO_RESULTS"}`, want: outcome.Outcome{Class: outcome.OK}},
		{name: "Reddit, a page", status: 403, header: headers("Content-Type: text/html"), body: "<html><body><p>we've seen far too many requests come from your IP address recently.</p></body></html>", want: throttle("403")},
		{name: "a limit of tokens alone", status: 429, header: headers("X-Rate-Limit-Tokens-Remaining: 0", "X-Rate-Limit-Tokens-Reset: 4s"), want: hinted("429", 4*time.Second)},
		{name: "X, of a day", status: 429, header: headers("X-App-Limit-24hour-Remaining: 0", "X-App-Limit-24hour-Reset: 1795176004"), want: hinted("429", 4*time.Second)},
		{name: "a quota with units left", status: 429, header: headers("X-Quota-Remaining: 7", "X-Quota-Reset: 4"), want: throttle("429")},
		{name: "420", status: 420, header: headers("X-ESI-Error-Limit-Remain: 0", "X-ESI-Error-Limit-Reset: 4"), want: limits(hinted("420", 4*time.Second), outcome.Level{Name: "esi", Reset: 4 * time.Second})},
		{name: "418", status: 418, header: headers("Retry-After: 4"), want: hinted("418", 4*time.Second)},
		{name: "a teapot", status: 418, want: reject("418")},
		{name: "Telegram", status: 429, body: `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 5","parameters":{"retry_after":4}}`, want: hinted("429", 4*time.Second)},
		{name: "OpenRouter", status: 429, body: `{"error":{"message":"Rate limit exceeded","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795176004000"}}}}`, want: hinted("429", 4*time.Second)},
		{name: "OpenRouter, with something left", status: 429, body: `{"error":{"message":"Rate limit exceeded","code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"3","X-RateLimit-Reset":"1795176004000"}}}}`, want: throttle("429")},
		{name: "Linear", status: 400, header: headers("X-RateLimit-Requests-Remaining: 0", "X-RateLimit-Requests-Reset: 1795176004000"), body: `{"errors":[{"message":"Rate limit exceeded","extensions":{"code":"RATELIMITED"}}]}`, want: limits(hinted("RATELIMITED", 4*time.Second), outcome.Level{Name: "requests", Reset: 4 * time.Second})},
		{name: "QuickBooks", status: 403, body: `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><IntuitResponse xmlns="http://schema.intuit.com/finance/v3"><Fault type="SERVICE"><Error code="3001"><Message>message=ThrottleExceeded; errorCode=003001; statusCode=403</Message><Detail>The request limit was reached.  Try again later</Detail></Error></Fault></IntuitResponse>`, want: throttle("403")},
		{name: "Google Cloud Code, of a day", status: 429, body: `[{"error":{"code":429,"message":"Quota exceeded for quota metric 'Gemini 2.5 Pro Requests'","errors":[{"domain":"global","reason":"rateLimitExceeded"}],"status":"RESOURCE_EXHAUSTED","details":[{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"Gemini25ProRequestsPerDay"}}]}}]`, want: after(quota(throttle("RESOURCE_EXHAUSTED")), 20*time.Hour)},
		{name: "Hugging Face", status: 429, header: headers(`RateLimit: "api";r=0;t=55`, `RateLimit-Policy: "fixed window";"api";q=500;w=300`), want: limits(hinted("429", 55*time.Second), outcome.Level{Name: "api", Reset: 55 * time.Second})},
		{name: "PayPal", status: 429, body: `{"name":"RATE_LIMIT_REACHED","message":"Too many requests. Blocked due to rate limiting."}`, want: throttle("RATE_LIMIT_REACHED")},
		{name: "Zoom", status: 429, header: headers("Retry-After: 2026-11-21T00:00:00Z"), body: `{"code":429,"message":"You have reached the maximum daily rate limit for this API."}`, want: after(quota(throttle("429")), 12*time.Hour)},
		{name: "Stack Exchange", status: 400, body: `{"error_id":502,"error_message":"too many requests from this IP, more requests available in 17524 seconds","error_name":"throttle_violation"}`, want: hinted("throttle_violation", 17524*time.Second)},
		{name: "Kong, a day", status: 429, header: headers("X-RateLimit-Limit-Day: 1000", "X-RateLimit-Remaining-Day: 0", "Retry-After: 60"), want: limits(after(quota(throttle("429")), time.Minute), outcome.Level{Name: "day", Limit: 1000, Window: day})},
		{name: "RapidAPI, a month, in seconds", status: 429, header: headers("X-RateLimit-Requests-Limit: 500", "X-RateLimit-Requests-Remaining: 0", "X-RateLimit-Requests-Reset: 86400"), body: `{"message":"You have exceeded the MONTHLY quota for Requests on your current plan, BASIC."}`,
			want: limits(after(quota(throttle("429")), day), outcome.Level{Name: "requests", Limit: 500, Reset: day})},
		{name: "a quota next to the limit of a second", status: 429, header: headers("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1"), body: `{"message":"You have reached your daily limit."}`,
			want: limits(quota(throttle("429")), outcome.Level{Reset: time.Second})},
		{name: "Azure API Management, a quota", status: 403, body: `{"statusCode":403,"message":"Out of call volume quota. Quota will be replenished in 11:40:41."}`, want: after(quota(throttle("403")), 11*time.Hour+40*time.Minute+41*time.Second)},
		{name: "Azure Storage, HEAD", method: "HEAD", status: 503, header: headers("x-ms-error-code: ServerBusy"), want: throttle("ServerBusy")},
		{name: "Azure Storage, another code", method: "HEAD", status: 404, header: headers("x-ms-error-code: BlobNotFound"), want: reject("404")},
		{name: "Amazon's Selling Partner API, of a second", status: 429, body: `{"errors":[{"code":"QuotaExceeded","message":"You exceeded your quota for the requested resource.","details":""}]}`, want: throttle("429")},
		{name: "Azure, of cores", status: 409, body: `{"error":{"code":"QuotaExceeded","message":"Operation results in exceeding approved cores quota."}}`, want: reject("QuotaExceeded")},
		{name: "Alibaba Cloud", status: 400, body: `{"Code":"Throttling.User","Message":"Request was denied due to user flow control."}`, want: throttle("Throttling.User")},
		{name: "Alibaba Cloud, a refusal", status: 400, body: `{"Code":"InvalidParameter.Throttling","Message":"m"}`, want: reject("InvalidParameter.Throttling")},
		{name: "ACME", status: 403, header: headers("Content-Type: application/problem+json"), body: `{"type":"urn:ietf:params:acme:error:rateLimited","detail":"m","status":403}`, want: throttle("rateLimited")},
		{name: "a problem with a quota of any length", status: 429, header: headers("Content-Type: application/problem+json"), body: `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded"}`, want: throttle("429")},
		{name: "Salesforce in SOAP", status: 500, header: headers("Content-Type: text/xml"), body: `<soapenv:Envelope><soapenv:Body><soapenv:Fault><faultcode>sf:REQUEST_LIMIT_EXCEEDED</faultcode></soapenv:Fault></soapenv:Body></soapenv:Envelope>`, want: throttle("REQUEST_LIMIT_EXCEEDED")},
		{name: "PyPI in XML-RPC", status: 200, header: headers("Content-Type: text/xml"), body: `<methodResponse><fault><value><string>HTTPTooManyRequests: there were too many requests by the client. Limit may reset in 4 seconds.</string></value></fault></methodResponse>`, want: hinted("429", 4*time.Second)},
		{name: "XML-RPC with a result", status: 200, header: headers("Content-Type: text/xml"), body: `<methodResponse><params><value><string>There were too many requests. Reset in 4 seconds.</string></value></params></methodResponse>`, want: ok()},
		{name: "Tencent Cloud", status: 200, header: headers("Content-Type: application/json"), body: `{"Response":{"Error":{"Code":"RequestLimitExceeded.Uin","Message":"m"},"RequestId":"r"}}`, want: throttle("RequestLimitExceeded.Uin")},
		{name: "Tencent Cloud, a refusal", status: 200, header: headers("Content-Type: application/json"), body: `{"Response":{"Error":{"Code":"InvalidParameter","Message":"m"},"RequestId":"r"}}`, want: ok()},
		{name: "Vimeo, a vague message", status: 429, header: headers("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 4"), body: `{"error":"Too many API requests. Wait an hour or so, then try again."}`, want: limits(hinted("429", 4*time.Second), outcome.Level{Reset: 4 * time.Second})},
		{name: "a rejected call says no throttle", status: 404, body: `{"message":"Too many requests are made for this. Not found."}`, want: reject("404")},
	})
}

// TestGraphQLThrottleInSuccess reads throttles with status 200.
func TestGraphQLThrottleInSuccess(t *testing.T) {
	shopify := `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED","documentation":"https://shopify.dev/api/usage/rate-limits"}}],"extensions":{"cost":{"requestedQueryCost":266,"actualQueryCost":null,"throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":66,"restoreRate":50.0}}}}`
	json := headers("Content-Type: application/json; charset=utf-8")
	run(t, []answer{
		{name: "Shopify", status: 200, header: json, body: shopify, want: after(throttle("THROTTLED"), 4*time.Second)},
		{name: "as a query in a GET", method: "GET", status: 200, header: json, body: shopify, want: after(throttle("THROTTLED"), 4*time.Second)},
		{name: "with a media type of its own", status: 200, header: headers("Content-Type: application/graphql-response+json"), body: shopify, want: after(throttle("THROTTLED"), 4*time.Second)},
		{name: "Shopify, older", status: 200, header: json, body: `{"errors":[{"message":"Throttled"}],"extensions":{"cost":{"requestedQueryCost":202,"throttleStatus":{"currentlyAvailable":2,"restoreRate":50.0}}}}`, want: after(throttle("Throttled"), 4*time.Second)},
		{name: "without data", status: 200, header: json, body: `{"data":null,"errors":[{"message":"m","extensions":{"code":"RATE_LIMITED"}}]}`, want: throttle("RATE_LIMITED")},
		{name: "the second error", status: 200, header: json, body: `{"errors":[{"message":"m","extensions":{"code":"OTHER"}},{"message":"m","extensions":{"code":"THROTTLED"}}]}`, want: throttle("THROTTLED")},
		{name: "GitHub", status: 200, header: headers("Content-Type: application/json", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795176004"), body: `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded for user ID 1."}]}`, want: limits(after(throttle("RATE_LIMITED"), 4*time.Second), outcome.Level{Reset: 4 * time.Second})},
		{name: "monday.com", status: 200, header: json, body: `{"error_code":"ComplexityException","status_code":429,"error_message":"Complexity budget exhausted, query cost 222080 budget remaining 747 out of 10000000 reset in 16 seconds","errors":["Complexity budget exhausted"]}`, want: after(throttle("ComplexityException"), 16*time.Second)},
		{name: "Slack", status: 200, header: json, body: `{"ok":false,"error":"ratelimited"}`, want: throttle("ratelimited")},
		{name: "with data", status: 200, header: json, body: `{"data":{"a":1},"errors":[{"message":"m","extensions":{"code":"THROTTLED"}}]}`, want: ok()},
		{name: "with data behind the errors", status: 200, header: json, body: `{"errors":[{"message":"m","extensions":{"code":"THROTTLED"}}],"data":{"a":1}}`, want: ok()},
		{name: "counts of errors", status: 200, header: json, body: `{"errors":[{"code":"429","count":12},{"code":"500","count":1}],"total":13}`, want: ok()},
		{name: "a stored alert", status: 200, header: json, body: `{"error":{"code":429},"webhook":"created"}`, want: ok()},
		{name: "a stored ticket", status: 200, header: json, body: `{"errors":[{"type":"RATE_LIMITED"}],"id":"x","created_at":"2026"}`, want: ok()},
		{name: "a found log line", status: 200, header: json, body: `{"error":"rate_limit_exceeded","count":42,"buckets":[1,2]}`, want: ok()},
		{name: "with an ID of the request", status: 200, header: json, body: `{"error":{"code":"THROTTLED","message":"m"},"request_id":"x","status":429}`, want: throttle("THROTTLED")},
		{name: "another error", status: 200, header: json, body: `{"errors":[{"message":"m","extensions":{"code":"BAD_USER_INPUT"}}]}`, want: ok()},
		{name: "words alone", status: 200, header: json, body: `{"errors":[{"message":"Rate limit exceeded, try again in 4 seconds"}]}`, want: ok()},
		{name: "a document", method: "GET", status: 200, header: headers("Content-Type: application/json", "Last-Modified: Fri, 20 Nov 2026 11:00:00 GMT"), body: shopify, want: ok()},
		{name: "text", status: 200, header: headers("Content-Type: text/plain"), body: shopify, want: ok()},
		{name: "HEAD", method: "HEAD", status: 200, header: json, body: shopify, want: ok()},
	})
}

// TestThrottlesInSuccesses reads throttles that APIs send with status 200, and answers that resemble them.
func TestThrottlesInSuccesses(t *testing.T) {
	json := headers("Content-Type: application/json")
	lag := headers("Content-Type: application/json", "Retry-After: 5", "MediaWiki-API-Error: maxlag")
	bybit := headers("Content-Type: application/json", "X-Bapi-Limit: 10", "X-Bapi-Limit-Status: 0", "X-Bapi-Limit-Reset-Timestamp: 1795176004000")
	for _, a := range []answer{
		{name: "MediaWiki", header: json, body: `{"error":{"code":"ratelimited","info":"You've exceeded your rate limit.","*":"See api.php"},"servedby":"mw1"}`, want: throttle("ratelimited")},
		{name: "MediaWiki, errors", header: json, body: `{"errors":[{"code":"ratelimited","text":"m","module":"edit"}],"docref":"See api.php","servedby":"mw1"}`, want: throttle("ratelimited")},
		{name: "maxlag", header: lag, body: `{"error":{"code":"maxlag","info":"Waiting for 10.64.16.34: 7.3 seconds lagged.","host":"h","lag":7.3,"type":"db"},"servedby":"mw1"}`, want: after(throttle("maxlag"), 5*time.Second)},
		{name: "MediaWiki, another error", header: lag, body: `{"error":{"code":"badtoken","info":"m"},"servedby":"mw1"}`, want: ok()},
		{name: "VK 6", header: json, body: `{"error":{"error_code":6,"error_msg":"Too many requests per second","request_params":[{"key":"v","value":"5.199"}]}}`, want: throttle("vk:6")},
		{name: "VK 9", header: json, body: `{"error":{"error_code":9,"error_msg":"Flood control"}}`, want: throttle("vk:9")},
		{name: "VK 29", header: json, body: `{"error":{"error_code":29,"error_msg":"Rate limit reached"}}`, want: throttle("vk:29")},
		{name: "VK 5", header: json, body: `{"error":{"error_code":5,"error_msg":"User authorization failed"}}`, want: ok()},
		{name: "a code like VK's", header: json, body: `{"error":{"error_code":6,"text":"m"}}`, want: ok()},
		{name: "Kraken", header: json, body: `{"error":["EAPI:Rate limit exceeded"]}`, want: throttle("EAPI:Rate_limit_exceeded")},
		{name: "Kraken, with a result", header: json, body: `{"error":["EOrder:Rate limit exceeded"],"result":{}}`, want: throttle("EOrder:Rate_limit_exceeded")},
		{name: "Kraken, until", header: json, body: `{"error":["EService:Throttled: 1795176004"]}`, want: after(throttle("EService:Throttled"), 4*time.Second)},
		{name: "Kraken, another error", header: json, body: `{"error":["EAPI:Invalid nonce"]}`, want: ok()},
		{name: "Kraken, no error", header: json, body: `{"error":[],"result":{"a":"EAPI:Rate limit exceeded"}}`, want: ok()},
		{name: "Bybit", header: bybit, body: `{"retCode":10006,"retMsg":"Too many visits!","result":{},"retExtInfo":{},"time":1693924869139}`, want: limits(after(throttle("retCode:10006"), 4*time.Second), outcome.Level{Name: "bybit", Limit: 10, Reset: 4 * time.Second})},
		{name: "Bybit, another error", header: json, body: `{"retCode":10001,"retMsg":"params error","result":{},"retExtInfo":{},"time":1}`, want: ok()},
		{name: "Bybit, a result", header: json, body: `{"retCode":10006,"retMsg":"m","result":{"list":[1]},"time":1}`, want: ok()},
		{name: "Marketo 606", header: json, body: `{"requestId":"e42b#14272d07d78","success":false,"errors":[{"code":"606","message":"Max rate limit '100' exceeded with in '20' secs"}]}`, want: throttle("marketo:606")},
		{name: "Marketo 615", header: json, body: `{"requestId":"e42b#14272d07d78","success":false,"errors":[{"code":"615","message":"Concurrent access limit reached"}]}`, want: throttle("marketo:615")},
		{name: "Marketo 607", header: json, body: `{"requestId":"e42b#14272d07d78","success":false,"errors":[{"code":"607","message":"Daily API Request Limit Reached"}]}`, want: quota(throttle("marketo:607"))},
		{name: "Marketo 601", header: json, body: `{"requestId":"e42b#14272d07d78","success":false,"errors":[{"code":"601","message":"Access token invalid"}]}`, want: ok()},
		{name: "Marketo, success", header: json, body: `{"requestId":"e42b#1","success":true,"errors":[{"code":"606"}]}`, want: ok()},
		{name: "Marketo, a record", header: json, body: `{"requestId":"e42b#1","success":false,"errors":[{"code":"606"}],"result":[{"id":1}]}`, want: ok()},
		{name: "a code like Marketo's", header: json, body: `{"success":false,"errors":[{"code":"606","message":"m"}]}`, want: ok()},
	} {
		for _, a.method = range []string{"GET", "POST"} {
			a.status = 200
			run(t, []answer{a})
			needs := a.header.Clone()
			needs.Set("Content-Length", "300")
			if a.want.Class == outcome.Throttled && (!NeedsStart(a.method, 200, needs, false) || !Starts([]byte(a.body)[:min(len(a.body), StartBytes)])) {
				t.Errorf("%s: not read", a.name)
			}
		}
	}
	if !NeedsStart("GET", 200, headers("Content-Type: application/json", "Content-Encoding: gzip", "MediaWiki-API-Error: maxlag"), false) {
		t.Error("an error of MediaWiki without a length is not read")
	}
}

// TestThrottlesWithOtherStatuses reads throttles whose status has another meaning elsewhere.
func TestThrottlesWithOtherStatuses(t *testing.T) {
	usage := headers(`X-Business-Use-Case-Usage: {"1":[{"type":"ads_insights","call_count":100,"estimated_time_to_regain_access":5}],"2":[{"type":"pages","estimated_time_to_regain_access":0}]}`)
	idle := headers(`X-Business-Use-Case-Usage: {"1":[{"type":"ads_insights","call_count":1,"estimated_time_to_regain_access":0}]}`, `X-App-Usage: {"call_count":28,"total_time":25,"total_cputime":25}`)
	banned := `{"code":-1003,"msg":"Way too many requests; IP banned until 1795176004000. Please use the websocket for live updates to avoid bans."}`
	weight := `{"code":-1003,"msg":"Way too much request weight used; IP banned until 1795176004000. Please use WebSocket Streams for live updates to avoid bans."}`
	answers := []answer{
		{name: "Binance 418", status: 418, body: banned, want: after(throttle("418"), 4*time.Second)},
		{name: "Binance 418, weight", status: 418, body: weight, want: after(throttle("418"), 4*time.Second)},
		{name: "Binance 429", status: 429, body: weight, want: after(throttle("429"), 4*time.Second)},
		{name: "a teapot", status: 418, body: `{"message":"I'm a teapot until 2026-11-20T12:00:04Z"}`, want: after(reject("418"), 4*time.Second)},
		{name: "Foursquare", status: 403, body: `{"meta":{"code":403,"errorType":"rate_limit_exceeded","errorDetail":"Rate limit for this hour exceeded."},"response":{}}`, want: throttle("rate_limit_exceeded")},
		{name: "Foursquare, a refusal", status: 403, body: `{"meta":{"code":403,"errorType":"not_authorized"},"response":{}}`, want: reject("403")},
		{name: "Sentry", status: 429, header: headers("X-Sentry-Rate-Limits: 60:error;transaction:key, 2700:default;security:organization:quota_exceeded"), want: after(throttle("429"), 2700*time.Second)},
		{name: "Sentry, all categories", status: 429, header: headers("X-Sentry-Rate-Limits: 60::organization"), want: after(throttle("429"), time.Minute)},
		{name: "KuCoin", status: 429, header: headers("gw-ratelimit-limit: 500", "gw-ratelimit-remaining: 0", "gw-ratelimit-reset: 4000"), body: `{"code":"429000","msg":"Too many requests"}`,
			want: limits(after(throttle("429000"), 4*time.Second), outcome.Level{Name: "kucoin", Limit: 500, Reset: 4 * time.Second})},
		{name: "Meta, another error", status: 400, header: usage, body: `{"error":{"message":"(#100) Invalid parameter","type":"OAuthException","code":100,"fbtrace_id":"x"}}`, want: after(reject("OAuthException:100"), 5*time.Minute)},
		{name: "Meta, a refusal", status: 403, header: usage, body: `{"error":{"message":"(#10) No permission","type":"OAuthException","code":10,"fbtrace_id":"x"}}`, want: after(reject("OAuthException:10"), 5*time.Minute)},
		{name: "Cerebras, of a day", status: 429, header: headers("x-ratelimit-limit-requests-day: 14400", "x-ratelimit-remaining-requests-day: 0", "x-ratelimit-reset-requests-day: 33011.5", "x-ratelimit-limit-tokens-minute: 60000", "x-ratelimit-remaining-tokens-minute: 59000", "x-ratelimit-reset-tokens-minute: 11.5"),
			want: limits(quota(after(throttle("429"), 33011500*time.Millisecond)), outcome.Level{Name: "tokens", Limit: 60000, Remaining: 59000, Reset: 11500 * time.Millisecond, Window: time.Minute}, outcome.Level{Name: "requests-day", Limit: 14400, Reset: 33011500 * time.Millisecond, Window: 24 * time.Hour})},
		{name: "Cerebras, of a minute", status: 429, header: headers("x-ratelimit-limit-requests-day: 14400", "x-ratelimit-remaining-requests-day: 370", "x-ratelimit-reset-requests-day: 33011.5", "x-ratelimit-limit-tokens-minute: 60000", "x-ratelimit-remaining-tokens-minute: 0", "x-ratelimit-reset-tokens-minute: 11.5"),
			want: limits(after(throttle("429"), 11500*time.Millisecond), outcome.Level{Name: "tokens", Limit: 60000, Reset: 11500 * time.Millisecond, Window: time.Minute}, outcome.Level{Name: "requests-day", Limit: 14400, Remaining: 370, Reset: 33011500 * time.Millisecond, Window: 24 * time.Hour})},
	}
	for _, code := range []string{"4", "17", "32", "613", "80000", "80001", "80002", "80003", "80004", "80005", "80006", "80008", "80009", "80014"} {
		for _, status := range []int{400, 403} {
			for _, rest := range []string{"", `,"fbtrace_id":"x"`} {
				body := `{"error":{"message":"m","type":"OAuthException","code":` + code + rest + `}}`
				answers = append(answers, answer{name: "Meta " + code, status: status, header: usage, body: body, want: after(throttle("OAuthException:"+code), 5*time.Minute)},
					answer{name: "Meta, without a wait, " + code, status: status, header: idle, body: body, want: throttle("OAuthException:" + code)})
			}
		}
	}
	run(t, answers)
}

func TestNeedsStart(t *testing.T) {
	short := headers("Content-Type: application/json", "Content-Length: 300")
	for _, tt := range []struct {
		method string
		status int
		lines  []string
		asked  bool
		want   bool
	}{
		{"POST", 200, []string{"Content-Type: application/json", "Content-Length: 300"}, false, true},
		{"GET", 200, []string{"Content-Type: application/json", "Content-Length: 300"}, false, true},
		{"HEAD", 200, []string{"Content-Type: application/json", "Content-Length: 300"}, false, false},
		{"POST", 201, []string{"Content-Type: application/json", "Content-Length: 300"}, false, false},
		{"POST", 200, []string{"Content-Type: application/json"}, false, false}, // it may be a stream
		{"POST", 200, []string{"Content-Type: application/json"}, true, true},
		{"POST", 200, []string{"Content-Type: application/json", "Content-Length: 70000"}, false, false},
		{"POST", 200, []string{"Content-Type: application/json", "Content-Length: 300", "Content-Encoding: gzip"}, false, false},
		{"POST", 200, []string{"Content-Type: application/graphql-response+json", "Content-Encoding: gzip"}, true, true},
		{"POST", 200, []string{"Content-Type: text/event-stream"}, true, false},
		{"GET", 200, []string{"Content-Type: application/json", "Content-Length: 300", "Accept-Ranges: bytes"}, false, false},
	} {
		if got := NeedsStart(tt.method, tt.status, headers(tt.lines...), tt.asked); got != tt.want {
			t.Errorf("%s %d %v %v: %v", tt.method, tt.status, tt.lines, tt.asked, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { NeedsStart("POST", 200, short, false) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for start, want := range map[string]bool{
		`{"errors":[`: true, " {\n  \"errors\": [": true, `{"error":"`: true, `{"error_code":`: true, `{"data":null,`: true, `{ "data" : null,`: true, `{"extensions":{`: true, `{"ok":false,`: true,
		`{"data":{`: false, `{"ok":true`: false, `[{"errors":`: true, `{"Response":{"Error":{`: true, `{"retCode":10006`: true, `{"retCode":0,`: false, `{"success":false`: true, `{"success":true`: false, `{"requestId":"a#b","success":f`: true, `{"requestId":"a#b","success":true`: false, `{"requestId":"a","result":[`: false, `{"Response":{"Total":1`: false, `[1`: false, `{"id":1`: false, ``: false, `{`: false, `"errors"`: false, `{"data":`: false,
	} {
		if got := Starts([]byte(start)); got != want {
			t.Errorf("%s: %v", start, got)
		}
	}
}

func packed(t *testing.T, coding string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw":
		w, _ = flate.NewWriter(&b, 9)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPackedBodies(t *testing.T) {
	body := []byte(`{"parameters":{"retry_after":4}}`)
	reverse := func(coding string, b []byte, most int) []byte { // represents a coding that only the caller supports
		if coding != "br" {
			return nil
		}
		out := bytes.Clone(b[:min(len(b), most)])
		for i, c := range b {
			out[len(b)-1-i] = c
		}
		return out
	}
	for i, tt := range []struct {
		codings []string
		body    []byte
		want    time.Duration
	}{
		{[]string{"gzip"}, packed(t, "gzip", body), 4 * time.Second},
		{[]string{"x-gzip"}, packed(t, "gzip", body), 4 * time.Second},
		{[]string{"GZIP"}, packed(t, "gzip", body), 4 * time.Second},
		{[]string{"deflate"}, packed(t, "deflate", body), 4 * time.Second},
		{[]string{"deflate"}, packed(t, "raw", body), 4 * time.Second},
		{[]string{"br"}, reverse("br", body, 1000), 4 * time.Second},
		{[]string{"deflate, gzip"}, packed(t, "gzip", packed(t, "deflate", body)), 4 * time.Second},
		{[]string{"br", "gzip"}, packed(t, "gzip", reverse("br", body, 1000)), 4 * time.Second},
		{[]string{"identity"}, body, 4 * time.Second},
		{[]string{"gzip"}, body, 4 * time.Second}, // it is not encoded as declared
		{[]string{"deflate"}, body, 4 * time.Second},
		{[]string{"zstd"}, body, 4 * time.Second},
		{[]string{"compress"}, body, 4 * time.Second},
		{[]string{"utf-8"}, body, 4 * time.Second},
		{[]string{"none"}, body, 4 * time.Second},
		{[]string{"br"}, body[:0], 0},
		{[]string{"br"}, packed(t, "gzip", body), 4 * time.Second},
		{[]string{"deflate"}, packed(t, "gzip", body), 4 * time.Second},
		{[]string{"gzip"}, packed(t, "gzip", packed(t, "gzip", body)), 4 * time.Second}, // encoded again on its way
		{nil, packed(t, "gzip", body), 4 * time.Second},
	} {
		h := headers("Content-Type: application/json")
		h["Content-Encoding"] = tt.codings
		o := HTTP(Response{Status: 429, Header: h, Body: tt.body, Now: now, Unpack: reverse})
		if o.Hint.After != tt.want {
			t.Errorf("%d %v: %+v", i, tt.codings, o)
		}
	}
	bomb := packed(t, "gzip", make([]byte, 64<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	HTTP(Response{Status: 429, Header: headers("Content-Encoding: gzip"), Body: bomb, Now: now})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("allocated %d bytes for a body that unpacks to 64 MiB", n)
	}
}

// TestUnknownNames reads headers whose names end like one in the table.
func TestUnknownNames(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  string
	}{
		{[]string{"X-Acme-Retry-After: 4"}, "4s"},
		{[]string{"Llm_provider-Retry-After: 4"}, "4s"},
		{[]string{"X-Acme-Retry-After-Ms: 4000"}, "4s"},
		{[]string{"X-Acme-Ratelimit-Reset: 4"}, "4s"},
		{[]string{"X-Acme-Rate-Limit-Reset: 1795176004"}, "4s"},
		{[]string{"X-Acme-Ratelimit-Reset-After: 4.0"}, "4s"},
		{[]string{"X-Acme-Ratelimit-Reset-Ms: 4000"}, "4s"},
		{[]string{"X-Acme-Ratelimit-Remaining: 0", "X-Acme-Ratelimit-Reset: 4"}, "4s"},
		{[]string{"X-Acme-Ratelimit-Remaining: 7", "X-Acme-Ratelimit-Reset: 4"}, ""},
		{[]string{"X-Acme-Reset: 4"}, ""},
	} {
		h := HTTP(Response{Status: 429, Header: headers(tt.lines...), Now: now}).Hint
		if got := map[bool]string{true: fmt.Sprint(h.After)}[h.Said]; got != tt.want {
			t.Errorf("%v: %+v", tt.lines, h)
		}
	}
}

// TestFormsOfHints reads a wait of four seconds from responses with an unusual form.
func TestFormsOfHints(t *testing.T) {
	utf16 := []byte{0xff, 0xfe}
	for _, c := range []byte(`{"retry_after":4}`) {
		utf16 = append(utf16, c, 0)
	}
	for _, tt := range []struct {
		header []string
		body   string
	}{
		{[]string{"RetryAfter: 4"}, ""},
		{[]string{"Retry-After: Nov 20, 2026 12:00:04 PM UTC"}, ""},
		{[]string{"Retry-After: November 20, 2026 12:00:04 UTC"}, ""},
		{[]string{"Retry_after: 4"}, ""},
		{[]string{"X-Ratelimit-Retryafter: 4"}, ""},
		{[]string{"X-Ratelimit-Remaining: 0", "X-Ratelimit-Resetat: 2026-11-20T12:00:04Z"}, ""},
		{[]string{"X-Rate-Limit-Remaining: 0", "X-Ratelimit-Reset-Time: 1795176004"}, ""},
		{[]string{`Ratelimit: "a";r=0;t="4", "b";r=5;t=90`}, ""},
		{[]string{`Ratelimit: "a";r=0;t=4.0`}, ""},
		{[]string{`Ratelimit: "a";r=0;t=@1795176004`}, ""},
		{[]string{`Ratelimit: "a";r=0;t=1795176004`}, ""},
		{[]string{`Ratelimit: limit=100; remaining=0; reset=4`}, ""},
		{[]string{`Ratelimit: limit=100, remaining=0, reset=1795176004`}, ""},
		{nil, ")]}',\n" + `{"retry_after":4}`},
		{nil, `callback({"retry_after":4})`},
		{nil, "data: " + `{"retry_after":4}` + "\n\n"},
		{nil, "Retry-After: 4"},
		{nil, "error=slow_down&retry_after=4"},
		{nil, string(utf16)},
		{nil, `{"error":"{\"retry_after\":4}"}`},
		{nil, `{"error":{"message":"{\"error\":{\"details\":[{\"retryDelay\":\"4s\"}]}}"}}`},
		{nil, `{"retry_after":{"seconds":4}}`},
		{nil, `{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":{"seconds":"4"}}]}}`},
		{nil, `{"rateLimit":{"remaining":0,"reset":1795176004}}`},
		{nil, `<Error><Code>TooManyRequests</Code><RetryAfter>4</RetryAfter></Error>`},
		{nil, `<?xml version="1.0"?><error><retry_after_seconds>4</retry_after_seconds></error>`},
		{nil, `<response><error retry-after="4">busy</error></response>`},
		{nil, `<fault><description>Please retry after 4 seconds</description></fault>`},
		{nil, `{"error":"Try again in **4** seconds"}`},
		{nil, `{"error":"Please wait 4 more seconds"}`},
		{nil, `{"error":"Retry in 00:00:04."}`},
		{nil, `{"error":"Retry in PT4S."}`},
		{nil, `{"error":"Limit resets at Nov 20, 2026 12:00:04 UTC."}`},
		{nil, `{"error":"Blocked until Fri Nov 20 2026 12:00:04 GMT+0000, then it is open"}`},
	} {
		o := HTTP(Response{Status: 429, Header: headers(tt.header...), Body: []byte(tt.body), Now: now})
		if o.Class != outcome.Throttled || !o.Hint.Said || o.Hint.After != 4*time.Second {
			t.Errorf("%v %s: %+v", tt.header, tt.body, o)
		}
	}
	for _, header := range [][]string{
		{"X-Ratelimit-Remaining: 7", "X-Ratelimit-Reset-Time: 1795176004"}, // units are left
		{`Ratelimit: "a";r=0;t=?1`},
		{`Ratelimit: "a";r=0;t=-4`},
	} {
		if o := HTTP(Response{Status: 429, Header: headers(header...), Now: now}); o.Hint.Said && o.Hint.After > 0 {
			t.Errorf("%v: %+v", header, o)
		}
	}
	if o := HTTP(Response{Status: 429, Body: []byte(`{"error":"The limit resets at 12:00:04"}`), Now: now}); o.Hint.Said { // a time of day is not a wait
		t.Errorf("%+v", o)
	}
}

// TestStatusOfBodyIsAThrottle reads throttles from the status or the code in a body, where the response's status differs.
func TestStatusOfBodyIsAThrottle(t *testing.T) {
	for body, want := range map[string]outcome.Class{
		`{"errors":[{"message":"x","extensions":{"code":429}}]}`:                                     outcome.Throttled,
		`{"errors":[{"message":"x","extensions":{"code":"429"}}]}`:                                   outcome.Throttled,
		`{"errors":[{"message":"x","extensions":{"http":{"status":429}}}],"data":null}`:              outcome.Throttled,
		`{"errors":[{"message":"x","extensions":{"classification":"RATE_LIMITED"}}]}`:                outcome.Throttled,
		`{"errors":[{"message":"x","extensions":{"errorType":"rate-limited"}}]}`:                     outcome.Throttled,
		`{"errors":[{"message":"x","extensions":{"exception":{"code":"THROTTLED"}}}]}`:               outcome.Throttled,
		`[{"errors":[{"message":"x","extensions":{"code":"THROTTLED"}}]}]`:                           outcome.Throttled,
		`{"error":{"code":429,"message":"Rate limited by the provider"}}`:                            outcome.Throttled,
		`[{"errors":[{"message":"x","extensions":{"code":"THROTTLED"}}]},{"data":{"id":1}}]`:         outcome.OK,
		`{"errors":[{"message":"x","extensions":{"code":"THROTTLED"}}],"data":{"id":1}}`:             outcome.OK,
		`{"errors":[{"message":"x","extensions":{"code":400}}]}`:                                     outcome.OK,
		`{"errors":[{"message":"429 is no code","extensions":{"code":"BAD_USER_INPUT"}}],"data":{}}`: outcome.OK,
	} {
		r := Response{Method: "POST", Status: 200, Header: headers("Content-Type: application/json"), Body: []byte(body), Now: now}
		if o := HTTP(r); o.Class != want {
			t.Errorf("%s: %+v, want %v", body, o, want)
		}
	}
	for _, r := range []Response{
		{Status: 403, Header: headers("X-Mashery-Error-Code: ERR_403_DEVELOPER_OVER_QPS"), Body: []byte("<h1>Developer Over Qps</h1>")},
		{Status: 500, Body: []byte(`{"fault":{"faultstring":"Spike arrest violation","detail":{"errorcode":"policies.ratelimit.SpikeArrestViolation"}}}`)},
		{Status: 403, Body: []byte(`<error><code>rate_limited</code></error>`)},
		{Status: 502, Body: []byte(`{"error":{"code":429,"message":"Provider returned error"}}`)},
	} {
		if o := HTTP(r); o.Class != outcome.Throttled || !o.Undone {
			t.Errorf("%s: %+v", r.Body, o)
		}
	}
}
