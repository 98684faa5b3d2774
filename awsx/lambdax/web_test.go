package lambdax

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
)

func newWeb(t *testing.T, o WebOptions) *Web {
	t.Helper()
	w, err := NewWeb(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func echo(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	w.Header().Add("Set-Cookie", "a=1")
	w.Header().Add("Set-Cookie", "b=2")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "%s %s%s from %s: %s|%s|%s", r.Method, r.Host, r.RequestURI, r.RemoteAddr, r.Header["Accept"], r.Header.Get("Cookie"), body)
	return nil
}

func TestRecordedRequests(t *testing.T) {
	web := newWeb(t, WebOptions{Handle: echo})

	v1, err := web.V1(t.Context(), recorded[events.APIGatewayProxyRequest](t, "apigw-request.json"))
	want := "POST gy415nuibc.execute-api.us-east-1.amazonaws.com/hello/world?name=me from 192.168.196.186: [*/*]||{\r\n\t\"a\": 1\r\n}"
	if err != nil || v1.StatusCode != 201 || v1.Body != want || len(v1.MultiValueHeaders["Set-Cookie"]) != 2 || v1.IsBase64Encoded {
		t.Errorf("%v, %+v, want %s", err, v1, want)
	}
	if id := v1.MultiValueHeaders["X-Correlation-Id"]; len(id) != 1 || id[0] != "deef4878-7910-11e6-8f14-25afc3e9ae33" {
		t.Errorf("correlation id %q", id)
	}

	v2, err := web.V2(t.Context(), recorded[events.APIGatewayV2HTTPRequest](t, "apigw-v2-request-jwt-authorizer.json"))
	want = "GET id.execute-api.us-east-1.amazonaws.com/my/path?parameter1=value1&parameter1=value2&parameter2=value from IP: []|cookie1; cookie2|{\r\n\t\"a\": 1\r\n}"
	if err != nil || v2.StatusCode != 201 || v2.Body != want || len(v2.Cookies) != 2 || v2.Headers["Set-Cookie"] != "" {
		t.Errorf("%v, %+v, want %s", err, v2, want)
	}
	if v2.Headers["X-Correlation-Id"] != "id" || !strings.HasPrefix(v2.Headers["Content-Type"], "text/plain") {
		t.Errorf("headers %v", v2.Headers)
	}
}

func TestAuthorizersAreInTheContext(t *testing.T) {
	claim := ""
	web := newWeb(t, WebOptions{Handle: func(_ http.ResponseWriter, r *http.Request) error {
		if e := V2Of(r.Context()); e != nil && V1Of(r.Context()) == nil {
			claim = e.RequestContext.Authorizer.JWT.Claims["claim1"]
		}
		return nil
	}})
	_, _ = web.V2(t.Context(), recorded[events.APIGatewayV2HTTPRequest](t, "apigw-v2-request-jwt-authorizer.json"))
	if claim != "value1" {
		t.Errorf("claim1 is %q", claim)
	}
}

// body is the body of a documented error.
type body struct {
	Error struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	} `json:"error"`
}

func TestErrorsAreAnsweredAsDocumented(t *testing.T) {
	secret := errors.New("dial postgres://user:hunter2@10.0.0.1")
	tests := []struct {
		name   string
		err    error
		status int
		code   string
		has    string
	}{
		{"a field", Invalid("message", "must not be empty"), 400, "VALIDATION_ERROR", `"details":{"field":"message","reason":"must not be empty"}`},
		{"a stranger", &Error{Code: Unauthorized, Message: "no token"}, 401, "UNAUTHORIZED", ""},
		{"forbidden", &Error{Code: Forbidden}, 403, "FORBIDDEN", ""},
		{"no message", fmt.Errorf("get: %w", &Error{Code: MessageNotFound}), 404, "MESSAGE_NOT_FOUND", ""},
		{"no delivery", &Error{Code: DeliveryNotFound}, 404, "DELIVERY_NOT_FOUND", ""},
		{"conflict", &Error{Code: Conflict}, 409, "CONFLICT", ""},
		{"another request", &Error{Code: IdempotencyKeyReused}, 422, "IDEMPOTENCY_KEY_REUSED", ""},
		{"a limit", &weir.Refusal{Reason: weir.RateLimited, RetryAfter: time.Second}, 429, "RATE_LIMIT_EXCEEDED", "retry_after_ms"},
		{"a breaker", fmt.Errorf("send: %w", &weir.Refusal{Reason: weir.CircuitOpen, RetryAfter: time.Second}), 503, "SERVICE_UNAVAILABLE", "retry_after_ms"},
		{"given up", &retry.GaveUpError{Why: retry.ErrAttempts, Last: secret}, 503, "SERVICE_UNAVAILABLE", ""},
		{"away", &Error{Code: ServiceUnavailable, Wait: time.Second, Err: secret}, 503, "SERVICE_UNAVAILABLE", ""},
		{"late", context.DeadlineExceeded, 503, "SERVICE_UNAVAILABLE", ""},
		{"large", &http.MaxBytesError{Limit: 5}, 413, "VALIDATION_ERROR", ""},
		{"anything", secret, 500, "INTERNAL_SERVER_ERROR", `"details":{"correlation_id":"c-1"}`},
		{"internal", &Error{Code: InternalServerError, Message: "hunter2", Err: secret}, 500, "INTERNAL_SERVER_ERROR", `"details":{"correlation_id":"c-1"}`},
		{"no code", &Error{Message: "hunter2"}, 500, "INTERNAL_SERVER_ERROR", `"details":{"correlation_id":"c-1"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			told := 0
			web := newWeb(t, WebOptions{
				Handle: func(w http.ResponseWriter, r *http.Request) error {
					fmt.Fprint(w, "half of an answer")
					return tt.err
				},
				Failed: func(_ context.Context, id string, err error) {
					if told++; id != "c-1" || err == nil {
						t.Errorf("told of %q, %v", id, err)
					}
				},
			})
			out, err := web.V2(t.Context(), events.APIGatewayV2HTTPRequest{Headers: map[string]string{"x-correlation-id": "c-1"}})
			var b body
			if err != nil || json.Unmarshal([]byte(out.Body), &b) != nil || out.StatusCode != tt.status || b.Error.Code != tt.code || b.Error.Details == nil {
				t.Errorf("%v, %d %s, want %d %s", err, out.StatusCode, out.Body, tt.status, tt.code)
			}
			if !strings.Contains(out.Body, tt.has) || strings.Contains(out.Body, "hunter2") || out.Headers["X-Correlation-Id"] != "c-1" {
				t.Errorf("%s, headers %v; want %s and no secret", out.Body, out.Headers, tt.has)
			}
			if waits := strings.Contains(tt.has, "retry_after") || tt.name == "away"; waits != (out.Headers["Retry-After"] != "") {
				t.Errorf("Retry-After %q", out.Headers["Retry-After"])
			}
			if want := tt.status == 500; want != (told == 1) {
				t.Errorf("people were told %d times", told)
			}
		})
	}
}

func TestAPanicIsAnswered(t *testing.T) {
	var log bytes.Buffer
	web := newWeb(t, WebOptions{Handle: func(http.ResponseWriter, *http.Request) error { panic("hunter2") }, Log: slog.New(slog.NewJSONHandler(&log, nil))})
	out, err := web.V1(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/"})
	if err != nil || out.StatusCode != 500 || strings.Contains(out.Body, "hunter2") {
		t.Errorf("%v, %+v", err, out)
	}
	id := out.MultiValueHeaders["X-Correlation-Id"][0]
	if id == "" || !strings.Contains(out.Body, id) || !strings.Contains(log.String(), id) || !strings.Contains(log.String(), "web_test.go") {
		t.Errorf("correlation id %q, log %s", id, &log)
	}
}

func TestARequestIsAnsweredInTime(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		heeds   bool
		want    time.Duration
	}{
		{"by the function's time", 10 * time.Second, true, 9500 * time.Millisecond},
		{"by its kind's limit", time.Minute, true, 14500 * time.Millisecond},
		{"though it does not heed its context", 10 * time.Second, false, 9750 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer cancel()
				began := time.Now()
				web := newWeb(t, WebOptions{Handle: func(w http.ResponseWriter, r *http.Request) error {
					if !tt.heeds {
						time.Sleep(time.Hour)
					}
					<-r.Context().Done()
					return fmt.Errorf("ask: %w", r.Context().Err())
				}})
				out, err := web.V2(ctx, events.APIGatewayV2HTTPRequest{})
				if took := time.Since(began); took != tt.want || err != nil || out.StatusCode != 503 {
					t.Errorf("%v, %d after %v, want %v", err, out.StatusCode, took, tt.want)
				}
				time.Sleep(2 * time.Hour) // until all requests have ended
			})
		})
	}
}

func TestBodiesMayBeBinary(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\xff"
	web := newWeb(t, WebOptions{Handle: func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.Copy(w, r.Body)
		return err
	}})
	out, err := web.V2(t.Context(), events.APIGatewayV2HTTPRequest{Body: base64.StdEncoding.EncodeToString([]byte(png)), IsBase64Encoded: true})
	if b, bad := base64.StdEncoding.DecodeString(out.Body); err != nil || bad != nil || string(b) != png || !out.IsBase64Encoded || out.Headers["Content-Type"] != "image/png" {
		t.Errorf("%v, %+v", err, out)
	}
	if out, _ = web.V2(t.Context(), events.APIGatewayV2HTTPRequest{Body: "%", IsBase64Encoded: true}); out.StatusCode != 400 {
		t.Errorf("a body that is no base64: %+v", out)
	}
}

func TestAnAnswerThatLambdaDoesNotTakeIsAnError(t *testing.T) {
	web := newWeb(t, WebOptions{Handle: func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(bytes.Repeat([]byte{0xff}, 5<<20)) // 6.7 MB in base64
		return err
	}})
	if out, err := web.V1(t.Context(), events.APIGatewayProxyRequest{}); err != nil || out.StatusCode != 500 {
		t.Errorf("%v, %d", err, out.StatusCode)
	}
}

func TestStagesAreNoPartOfThePath(t *testing.T) {
	for _, tt := range [][4]string{
		{"/dev/api/x", "dev", "a.execute-api.eu-west-1.amazonaws.com", "/api/x"},
		{"/dev", "dev", "a.execute-api.eu-west-1.amazonaws.com", "/"},
		{"/developers", "dev", "a.execute-api.eu-west-1.amazonaws.com", "/developers"},
		{"/dev/api", "dev", "api.example.com", "/dev/api"},
		{"/$default/x", "$default", "a.execute-api.eu-west-1.amazonaws.com", "/$default/x"},
	} {
		if got := unstaged(tt[0], tt[1], tt[2]); got != tt[3] {
			t.Errorf("%s of stage %s at %s: got %s, want %s", tt[0], tt[1], tt[2], got, tt[3])
		}
	}
}

func TestCorrelationIDsAreHarmless(t *testing.T) {
	for _, bad := range []string{"", "a b", "a\nb", `"`, strings.Repeat("x", 129)} {
		if got := correlationOf(bad, "request-id"); got != "request-id" {
			t.Errorf("%q: %q", bad, got)
		}
	}
	if a, b := correlationOf(""), correlationOf(""); a == b || a == "" {
		t.Errorf("%q and %q", a, b)
	}
}
