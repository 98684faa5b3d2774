package classify

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// now is the time of every response in the tables.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// headers parses "Key: value" lines.
func headers(lines ...string) http.Header {
	h := make(http.Header)
	for _, l := range lines {
		k, v, _ := strings.Cut(l, ": ")
		h.Add(k, v)
	}
	return h
}

type answer struct {
	name   string
	method string // "" is POST
	status int
	reason string
	header http.Header
	body   string
	want   outcome.Outcome
}

func (a answer) response() Response {
	method := a.method
	if method == "" {
		method = http.MethodPost
	}
	return Response{Method: method, Status: a.status, Reason: a.reason, Header: a.header, Body: []byte(a.body), Now: now}
}

func run(t *testing.T, answers []answer) {
	t.Helper()
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			if got := HTTP(a.response()); !reflect.DeepEqual(got, a.want) {
				t.Errorf("got  %+v\nwant %+v", got, a.want)
			}
		})
	}
}

// Short forms of outcomes.
func ok() outcome.Outcome                { return outcome.Outcome{Class: outcome.OK} }
func reject(code string) outcome.Outcome { return outcome.Outcome{Class: outcome.Rejected, Code: code} }
func fails(code string) outcome.Outcome  { return outcome.Outcome{Class: outcome.Failed, Code: code} }
func throttle(code string) outcome.Outcome {
	return outcome.Outcome{Class: outcome.Throttled, Code: code, Undone: true}
}

func after(o outcome.Outcome, d time.Duration) outcome.Outcome {
	o.Hint.Said, o.Hint.After = true, d
	return o
}

func advised(o outcome.Outcome, a outcome.Advice) outcome.Outcome {
	o.Hint.Advice = a
	return o
}

func quota(o outcome.Outcome) outcome.Outcome {
	o.Hint.Quota = true
	return o
}

func undone(o outcome.Outcome) outcome.Outcome {
	o.Undone = true
	return o
}

func limits(o outcome.Outcome, l ...outcome.Level) outcome.Outcome {
	o.Hint.Limits = l
	return o
}

func TestStatusAlone(t *testing.T) {
	want := map[int]outcome.Outcome{
		101: ok(), 200: ok(), 204: ok(), 206: ok(), 301: ok(), 304: ok(),
		400: reject("400"), 401: reject("401"), 403: reject("403"), 404: reject("404"),
		409: reject("409"), 413: reject("413"), 422: reject("422"), 424: reject("424"),
		408: fails("408"), 425: undone(fails("425")), 429: throttle("429"), 499: fails("499"),
		500: fails("500"), 502: fails("502"), 503: fails("503"), 504: fails("504"),
		507: fails("507"), 511: fails("511"), 520: fails("520"), 529: fails("529"), 599: fails("599"),
		501: reject("501"), 505: reject("505"), 510: reject("510"),
		0:   {Class: outcome.Unknown, Code: "0"},
		-1:  {Class: outcome.Unknown, Code: "-1"},
		600: {Class: outcome.Unknown, Code: "600"},
		999: {Class: outcome.Unknown, Code: "999"},
	}
	for status, want := range want {
		if got := HTTP(Response{Status: status}); !reflect.DeepEqual(got, want) {
			t.Errorf("status %d:\ngot  %+v\nwant %+v", status, got, want)
		}
	}
}

func TestHeadersWithStatus(t *testing.T) {
	run(t, []answer{
		{name: "503 with Retry-After is a refusal", status: 503, header: headers("Retry-After: 120"), want: after(throttle("503"), 2*time.Minute)},
		{name: "503 with an unreadable one is not", status: 503, header: headers("Retry-After: soon"), want: fails("503")},
		{name: "500 keeps its hint and stays failed", status: 500, header: headers("Retry-After: 3"), want: after(fails("500"), 3*time.Second)},
		{name: "a redirect is no failure", status: 301, header: headers("Retry-After: 3"), want: ok()},
		{name: "a 202 that says when to poll is no throttle", status: 202, header: headers("Retry-After: 3"), want: ok()},
		{name: "should retry beats 400", status: 400, header: headers("x-should-retry: true"), want: advised(fails("400"), outcome.Again)},
		{name: "should retry beats 409", status: 409, header: headers("x-should-retry: true"), want: advised(fails("409"), outcome.Again)},
		{name: "should not retry beats 500", status: 500, header: headers("x-should-retry: false"), want: advised(fails("500"), outcome.NotAgain)},
		{name: "should not retry beats 429", status: 429, header: headers("x-should-retry: false"), want: advised(throttle("429"), outcome.NotAgain)},
		{name: "nonsense is no advice", status: 400, header: headers("x-should-retry: maybe"), want: reject("400")},
		{name: "HEAD of S3 says it in the status line", method: "HEAD", status: 503, reason: "Slow Down", want: throttle("503")},
		{name: "GitHub's secondary limit", status: 403, header: headers("Retry-After: 60"), want: after(throttle("403"), time.Minute)},
		{
			name: "GitHub's primary limit", status: 403,
			header: headers("X-RateLimit-Limit: 5000", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795177800", "X-RateLimit-Resource: core"),
			want: limits(after(throttle("403"), 30*time.Minute),
				outcome.Level{Name: "core", Limit: 5000, Remaining: 0, Reset: 30 * time.Minute}),
		},
	})
}

const gemini = `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[
 {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[
  {"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaDimensions":{"model":"gemini-2.0-flash"},"quotaValue":"15"}DAILY]},
 {"@type":"type.googleapis.com/google.rpc.Help","links":[{"description":"quotas","url":"https://ai.google.dev/gemini-api/docs/rate-limits"}]},
 {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36.429760048s"}]}}`

var (
	geminiMinute = strings.Replace(gemini, "DAILY", "", 1)
	geminiDay    = strings.Replace(gemini, "DAILY", `,{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"200"}`, 1)
)

func TestVendorBodies(t *testing.T) {
	const delay = 36429760048 * time.Nanosecond
	run(t, []answer{
		{
			name: "OpenAI says it in words", status: 429,
			body: `{"error":{"message":"Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 3446. Please try again in 4.891s. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			want: after(throttle("rate_limit_exceeded"), 4891*time.Millisecond),
		},
		{
			name: "headers beat words", status: 429, header: headers("retry-after-ms: 250", "Retry-After: 9"),
			body: `{"error":{"message":"Please try again in 20ms.","code":"rate_limit_exceeded"}}`,
			want: after(throttle("rate_limit_exceeded"), 250*time.Millisecond),
		},
		{
			name: "OpenAI out of money", status: 429,
			body: `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			want: advised(quota(throttle("insufficient_quota")), outcome.NotAgain),
		},
		{
			name: "the type is enough", status: 429, header: headers("x-should-retry: true"),
			body: `{"error":{"type":"insufficient_quota","code":null}}`,
			want: advised(quota(throttle("insufficient_quota")), outcome.NotAgain),
		},
		{name: "OpenAI bad request", status: 400, body: `{"error":{"message":"m","type":"invalid_request_error","param":"model","code":null}}`, want: reject("invalid_request_error")},
		{name: "Anthropic throttle", status: 429, header: headers("retry-after: 17"), body: `{"type":"error","error":{"type":"rate_limit_error","message":"m"}}`, want: after(throttle("rate_limit_error"), 17*time.Second)},
		{name: "Anthropic overload is nobody's limit", status: 529, header: headers("x-should-retry: true"), body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, want: advised(fails("overloaded_error"), outcome.Again)},
		{name: "nor with 503 and a hint", status: 503, header: headers("Retry-After: 5"), body: `{"type":"error","error":{"type":"overloaded_error"}}`, want: undone(after(fails("overloaded_error"), 5*time.Second))},
		{name: "event in a stream", status: 500, body: `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Please try again in 6m0s."}}}`, want: after(throttle("rate_limit_exceeded"), 6*time.Minute)},
		{name: "Gemini per minute", status: 429, body: geminiMinute, want: after(throttle("RESOURCE_EXHAUSTED"), delay)},
		{name: "Gemini per day has a short RetryInfo too, and lasts until midnight in California", status: 429, body: geminiDay, want: after(quota(throttle("RESOURCE_EXHAUSTED")), 20*time.Hour)},
		{name: "Gemini in an array", status: 429, body: "[" + geminiMinute + "\n]", want: after(throttle("RESOURCE_EXHAUSTED"), delay)},
		{name: "Gemini without details", status: 429, body: `{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}`, want: throttle("RESOURCE_EXHAUSTED")},
		{name: "Gemini overloaded", status: 503, body: `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, want: fails("UNAVAILABLE")},
		{name: "cut short before the delay", status: 429, body: geminiMinute[:200], want: throttle("RESOURCE_EXHAUSTED")},
		{name: "ntfy requests", status: 429, body: `{"code":42901,"http":429,"error":"limit reached: too many requests","link":"https://ntfy.sh/docs/publish/#limitations"}`, want: throttle("42901")},
		{name: "ntfy day, until midnight UTC", status: 429, body: `{"code":42908,"http":429,"error":"limit reached: daily message quota reached"}`, want: after(quota(throttle("42908")), 12*time.Hour)},
		{name: "ntfy bandwidth", status: 429, body: `{"code":42905,"http":429,"error":"limit reached: daily bandwidth reached"}`, want: quota(throttle("42905"))},
		{name: "ntfy too large", status: 413, body: `{"code":41301,"http":413,"error":"attachment too large"}`, want: reject("41301")},
		{name: "a number alone is no code", status: 429, body: `{"code":42908}`, want: throttle("429")},
		{name: "not JSON after all", status: 400, body: `{not json`, want: reject("400")},
		{name: "HTML", status: 502, body: `<html><body><center><h1>502 Bad Gateway</h1></center></body></html>`, want: fails("502")},
		{name: "a sentence is no code", status: 400, body: `{"error":"something is wrong"}`, want: reject("400")},
		{name: "a sentence for a type", status: 429, body: `{"error":{"code":"` + strings.Repeat("x", 200) + `"}}`, want: throttle("429")},
	})
}

func TestGzippedBody(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(geminiDay))
	z.Close()
	a := answer{status: 429, header: headers("Content-Encoding: gzip"), body: b.String()}
	if got, want := HTTP(a.response()), after(quota(throttle("RESOURCE_EXHAUSTED")), 20*time.Hour); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	a.body = "not gzip"
	if got, want := HTTP(a.response()), throttle("429"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDepthDoesNotCost(t *testing.T) {
	body := strings.Repeat("[", MaxBody/2) + strings.Repeat("1,", MaxBody/4)
	if got, want := HTTP(Response{Status: 400, Body: []byte(body)}), reject("400"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
