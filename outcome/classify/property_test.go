package classify

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// pieces are parts of random values: legal ones, and ones that are known to have broken other parsers.
var pieces = []string{
	"0", "1", "-1", "60", "1.5", "9300000000", "9223372036854775807", "18446744073709551616", "1e9", "1e308", "1e999", "-1e999",
	"NaN", "Inf", "-Inf", "0x7f", "1_0", "", " ", ",", ";", "=", `"`, `\`, "s", "ms", "h", "-", ".", ":", "t=", "r=", "q=", "w=", `"x"`,
	"Fri, 20 Nov 2026 12:00:30 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "Friday, 20-Nov-26 12:00:30 GMT",
	"2026-11-20T11:00:01Z", "9999-12-31T23:59:59Z", "1795176045", "1795176045000", "6m0s", "2540400h10m10s", "true", "false",
	"4 seconds", "1h and 2 minutes", "PT1M30S", "P1DT2H", "00:00:04", "1.00:00:00", "2026-11-20T12:00Z", "20261120T120004+0100", "39/40", "a minute", "for ", "'", "1,000",
	"SlowDown", "THROTTLED", "OAuthException", "ThrottlingException", "é", "\x00", "\xff",
}

var keys = []string{
	"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After", "X-Should-Retry", "Date", "Ratelimit", "Ratelimit-Policy",
	"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens", "Anthropic-Ratelimit-Unified-Reset", "Anthropic-Ratelimit-Tokens-Reset",
	"X-Rate-Limit-Reset", "X-Rate-Limit-Remaining", "X-Ratelimit-Reset-After", "X-Ratelimit-Policy", "X-Ratelimit-Requests-Reset", "X-Shopify-Shop-Api-Call-Limit", "X-Acme-Ratelimit-Reset", "X-Acme-Retry-After",
	"Anthropic-Ratelimit-Unified-Status", "X-Business-Use-Case-Usage", "Stripe-Should-Retry", "Ratelimit-Reason",
	"X-Amzn-Errortype", "X-Amzn-Query-Error", "Content-Encoding",
}

var bodies = []string{
	`{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"%"}]}}`,
	`{"error":{"code":"rate_limit_exceeded","message":"Please try again in %."}}`,
	`{"parameters":{"retry_after":%}}`, `{"error":{"metadata":{"headers":{"X-RateLimit-Reset":"%","X-RateLimit-Remaining":"0"}}}}`, `{"message":"rate limit exceeded, retry after % or wait %"}`,
	`{"errors":[{"extensions":{"code":"%"}}],"extensions":{"cost":{"requestedQueryCost":%,"throttleStatus":{"currentlyAvailable":%,"restoreRate":%}}}}`, `{"error":{"code":4,"fbtrace_id":"%"}}`, `<html>try again in %</html>`, `try again at %`,
	`{"code":42908,"http":429}`, `{"__type":"a#%"}`, `<Error><Code>%</Code></Error>`, `%`, `[[{"%":%}]]`, ``,
}

func value(rng *rand.Rand) string {
	var b strings.Builder
	for range 1 + rng.IntN(4) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

func randomResponse(rng *rand.Rand) Response {
	h := make(http.Header)
	for range rng.IntN(6) {
		h.Add(keys[rng.IntN(len(keys))], value(rng))
	}
	body := strings.ReplaceAll(bodies[rng.IntN(len(bodies))], "%", value(rng))
	statuses := []int{0, 200, 400, 403, 418, 420, 429, 500, 503, 529, 700}
	methods := []string{"", "GET", "HEAD", "POST"}
	times := []time.Time{{}, now, time.Unix(1<<62, 0), time.Unix(-1<<62, 0)}
	return Response{
		Method: methods[rng.IntN(len(methods))], Status: statuses[rng.IntN(len(statuses))],
		Header: h, Body: []byte(body), Now: times[rng.IntN(len(times))],
	}
}

// checkPromises checks what the package promises for any input.
func checkPromises(t *testing.T, o outcome.Outcome) {
	t.Helper()
	h := o.Hint
	if h.After < 0 || h.After > MaxAfter || !h.Said && h.After != 0 {
		t.Errorf("After %v, Said %v: want 0 to %v, and 0 if unsaid", h.After, h.Said, MaxAfter)
	}
	for _, l := range h.Limits {
		if l.Limit < 0 || l.Remaining < -1 || l.Reset < 0 || l.Reset > MaxAfter || l.Window < 0 || l.Window > MaxAfter {
			t.Errorf("level out of bounds: %+v", l)
		}
	}
	if o.Class == outcome.Throttled && !o.Undone {
		t.Errorf("throttled, yet not undone: %+v", o)
	}
	if o.Class == outcome.OK && (o.Code != "" || h.Said || h.Advice != outcome.Unsaid) {
		t.Errorf("ok, with more than limits: %+v", o)
	}
	if o.Class != outcome.OK && o.Code == "" {
		t.Errorf("no code: %+v", o)
	}
	if len(o.Code) > 128 {
		t.Errorf("a code of %d bytes", len(o.Code))
	}
}

func TestNoInputBreaksThePromises(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	said := 0
	for i := range 50_000 {
		r := randomResponse(rng)
		o := HTTP(r)
		if checkPromises(t, o); t.Failed() {
			t.Fatalf("seed %d, case %d: %+v, body %s", seed, i, r, r.Body)
		}
		if o.Hint.Said {
			said++
		}
	}
	if said < 1000 {
		t.Errorf("seed %d: only %d cases said when to come back", seed, said)
	}
}

// The body may change the result only if NeedsBody returns true.
func TestNeedsBodyMissesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	types := []string{"", "application/json", "application/xml", "text/plain", "application/problem+json"}
	for i := range 5_000 {
		r := randomResponse(rng)
		r.Header.Del("Content-Encoding")
		if ct := types[rng.IntN(len(types))]; ct != "" {
			r.Header.Set("Content-Type", ct)
		}
		if r.Status < 200 || NeedsBody(r.Method, r.Status, r.Header) || r.Status < 300 && !isXML(r.Header) {
			continue
		}
		without := r
		without.Body = nil
		if got, want := HTTP(without), HTTP(r); got.Class != want.Class || got.Code != want.Code || got.Hint.After != want.Hint.After {
			t.Fatalf("seed %d, case %d: %+v: got %+v without the body, %+v with it", seed, i, r, got, want)
		}
	}
}
