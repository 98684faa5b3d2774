package llm

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRefuseSpeaksTheFamily(t *testing.T) {
	const m = "come back"
	for _, c := range []struct {
		family Family
		f      Failure
		status int
		body   string
		retry  string // x-should-retry
		code   string // x-amzn-errortype
	}{
		{OpenAI, Failure{Kind: Limited, Message: m}, 429, `{"error":{"message":"come back","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, "", ""},
		{Responses, Failure{Kind: Exhausted, Message: m}, 429, `{"error":{"message":"come back","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, "false", ""},
		{OpenAI, Failure{Kind: Exhausted, Message: m, RetryAfter: time.Minute}, 429, `{"error":{"message":"come back","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, "", ""},
		{OpenAI, Failure{Kind: Exhausted, Message: m, RetryAfter: time.Hour}, 429, `{"error":{"message":"come back","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, "false", ""},
		{OpenAI, Failure{Kind: Limited, Message: m, RetryAfter: time.Hour}, 429, `{"error":{"message":"come back","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, "false", ""},
		{OpenAI, Failure{Kind: GaveUp, Message: m, Final: true}, 502, `{"error":{"message":"come back","type":"server_error","param":null,"code":"upstream_error"}}`, "false", ""},
		{OpenAI, Failure{Kind: Stranger, Message: m, Final: true}, 401, `{"error":{"message":"come back","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, "false", ""},
		{Anthropic, Failure{Kind: Stranger, Message: m, Final: true}, 401, `{"type":"error","error":{"type":"authentication_error","message":"come back"},"request_id":null}`, "false", ""},
		{OpenAI, Failure{Kind: Invalid, Message: "\"x\"\n"}, 400, `{"error":{"message":"\"x\"\n","type":"invalid_request_error","param":null,"code":null}}`, "", ""},
		{Anthropic, Failure{Kind: Limited, Message: m, ID: "r"}, 429, `{"type":"error","error":{"type":"rate_limit_error","message":"come back"},"request_id":"r"}`, "", ""},
		{Anthropic, Failure{Kind: Unavailable, Status: 529, Message: m, Final: true}, 529, `{"type":"error","error":{"type":"overloaded_error","message":"come back"},"request_id":null}`, "false", ""},
		{Gemini, Failure{Kind: Limited, Message: m, RetryAfter: 1500 * time.Millisecond}, 429, `{"error":{"code":429,"message":"come back","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"weir/requests","quotaId":"WeirRequestsPerMinute"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.500s"}]}}`, "", ""},
		{Gemini, Failure{Kind: Exhausted, Message: m, RetryAfter: time.Hour}, 429, `{"error":{"code":429,"message":"come back","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"weir/requests","quotaId":"WeirRequestsPerDay"}]}]}}`, "false", ""},
		{Gemini, Failure{Kind: Timeout, Message: m}, 504, `{"error":{"code":504,"message":"come back","status":"DEADLINE_EXCEEDED"}}`, "", ""},
		{Converse, Failure{Kind: Limited, Message: m, RetryAfter: time.Second}, 429, `{"code":"ThrottlingException","message":"come back"}`, "", "ThrottlingException"},
		{Converse, Failure{Kind: Limited, Message: m, Final: true}, 400, `{"code":"WeirGaveUpException","message":"come back"}`, "false", "WeirGaveUpException"},
		{Invoke, Failure{Kind: Exhausted, Message: m}, 400, `{"code":"ServiceQuotaExceededException","message":"come back"}`, "false", "ServiceQuotaExceededException"},
		{Invoke, Failure{Kind: Timeout, Message: m}, 408, `{"message":"come back"}`, "", "ModelTimeoutException"},
		{Converse, Failure{Kind: Invalid, Message: m}, 400, `{"code":"ValidationException","message":"come back"}`, "", "ValidationException"},
		{OpenAI, Failure{Kind: "new", Message: m}, 500, `{"error":{"message":"come back","type":"server_error","param":null,"code":"upstream_error"}}`, "", ""},
	} {
		w := httptest.NewRecorder()
		w.Header().Set("Retry-After", "2")
		Default(c.family).Refuse(w, c.f)
		h := w.Header()
		if body := strings.TrimSpace(w.Body.String()); w.Code != c.status || body != c.body || h.Get("X-Should-Retry") != c.retry || h.Get("X-Amzn-Errortype") != c.code || h.Get("Retry-After") != "2" {
			t.Errorf("%s %+v:\n got %d %s %v\nwant %d %s", c.family, c.f, w.Code, body, h, c.status, c.body)
		}
	}
}
