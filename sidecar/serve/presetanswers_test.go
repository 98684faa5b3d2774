package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A throttle is a response that refuses a request because of a rate, as the API documents it.
type throttle struct {
	preset, name         string
	method, path, header string // of the request; header is "Name: value"
	body                 string
	status               int
	headers              map[string]string // %EPOCH+n% is the time in n seconds
	answer               string
	wait                 time.Duration // that the response requests; 0 if it requests none
}

var throttles = []throttle{
	{preset: "github", name: "primary limit", method: "GET", path: "/repos/golang/go", header: "Authorization: Bearer ghp_1", status: 403,
		headers: map[string]string{"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Used": "5000", "X-RateLimit-Resource": "core", "X-RateLimit-Reset": "%EPOCH+90%"},
		answer:  `{"message":"API rate limit exceeded for user ID 1.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`, wait: 90 * time.Second},
	{preset: "github", name: "secondary limit", method: "POST", path: "/repos/a/b/issues", header: "Authorization: Bearer ghp_1", body: `{"title":"x"}`, status: 403,
		headers: map[string]string{"Retry-After": "60"},
		answer:  `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`, wait: time.Minute},
	{preset: "gitlab", name: "API", method: "GET", path: "/api/v4/projects", header: "Private-Token: glpat-1", status: 429,
		headers: map[string]string{"RateLimit-Limit": "2000", "RateLimit-Observed": "2001", "RateLimit-Remaining": "0", "RateLimit-Reset": "%EPOCH+40%", "RateLimit-Name": "throttle_authenticated_api", "Retry-After": "40", "Content-Type": "text/plain"},
		answer:  "Retry later\n", wait: 40 * time.Second},
	{preset: "gitlab", name: "notes", method: "POST", path: "/api/v4/projects/1/issues/1/notes", header: "Authorization: Bearer glpat-1", body: `{"body":"x"}`, status: 429,
		answer: `{"message":{"error":"This endpoint has been requested too many times. Try again later."}}`},
	{preset: "cloudflare", name: "blocked", method: "POST", path: "/client/v4/zones/z/dns_records", header: "Authorization: Bearer cf", body: `{"type":"A"}`, status: 429,
		headers: map[string]string{"Retry-After": "287", "Ratelimit": `"default";r=0;t=287`, "Ratelimit-Policy": `"default";q=1200;w=300`},
		answer:  `{"success":false,"errors":[{"code":10429,"message":"Too many requests. Please consider throttling your request speed."}],"messages":[],"result":null}`, wait: 287 * time.Second},
	{preset: "stripe", name: "rate limit", method: "POST", path: "/v1/payment_intents", header: "Authorization: Bearer sk_live_1", body: "amount=1&currency=eur", status: 429,
		answer: `{"error":{"message":"Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits.","type":"invalid_request_error","code":"rate_limit"}}`},
	{preset: "stripe", name: "lock timeout", method: "POST", path: "/v1/customers/cus_1", header: "Authorization: Bearer sk_live_1", body: "name=x", status: 429,
		headers: map[string]string{"Stripe-Should-Retry": "true"},
		answer:  `{"error":{"code":"lock_timeout","message":"This object cannot be accessed right now because another API request or Stripe process is currently accessing it.","type":"invalid_request_error"}}`},
	{preset: "shopify", name: "REST", method: "GET", path: "/admin/api/2026-10/orders.json", header: "X-Shopify-Access-Token: shpat_1", status: 429,
		headers: map[string]string{"Retry-After": "2.0", "X-Shopify-Shop-Api-Call-Limit": "40/40"},
		answer:  `{"errors":"Exceeded 2 calls per second for api client. Reduce request rates to resume uninterrupted service."}`, wait: 2 * time.Second},
	{preset: "shopify", name: "GraphQL", method: "POST", path: "/admin/api/2026-10/graphql.json", header: "X-Shopify-Access-Token: shpat_1", body: `{"query":"{shop{name}}"}`, status: 200,
		headers: map[string]string{"Content-Type": "application/json; charset=utf-8"},
		answer:  `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED","documentation":"https://shopify.dev/api/usage/rate-limits"}}],"extensions":{"cost":{"requestedQueryCost":700,"actualQueryCost":null,"throttleStatus":{"maximumAvailable":2000.0,"currentlyAvailable":100,"restoreRate":100.0}}}}`, wait: 6 * time.Second},
	{preset: "slack", name: "posting", method: "POST", path: "/api/chat.postMessage", header: "Authorization: Bearer xoxb-1", body: `{"channel":"C1","text":"x"}`, status: 429,
		headers: map[string]string{"Retry-After": "10", "Content-Type": "application/json"}, answer: `{"ok":false,"error":"ratelimited"}`, wait: 10 * time.Second},
	{preset: "slack", name: "tier", method: "GET", path: "/api/conversations.list", header: "Authorization: Bearer xoxb-1", status: 429,
		headers: map[string]string{"Retry-After": "30"}, answer: `{"ok":false,"error":"ratelimited"}`, wait: 30 * time.Second},
	{preset: "openrouter", name: "free model", method: "POST", path: "/api/v1/chat/completions", header: "Authorization: Bearer sk-or-1", body: `{"model":"x/y:free","messages":[{"role":"user","content":"hi"}]}`, status: 429,
		headers: map[string]string{"Content-Type": "application/json"},
		answer:  `{"error":{"message":"Rate limit exceeded: free-models-per-min. ","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"%EPOCH+10%000"},"provider_name":null}},"user_id":"user_1"}`, wait: 10 * time.Second},
	{preset: "azure-openai", name: "deployment", method: "POST", path: "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21", header: "Api-Key: k", body: `{"messages":[{"role":"user","content":"hi"}],"max_tokens":5}`, status: 429,
		headers: map[string]string{"Retry-After": "7", "Retry-After-Ms": "6500", "X-Ratelimit-Remaining-Requests": "0", "Content-Type": "application/json"},
		answer:  `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 7 seconds."}}`, wait: 6500 * time.Millisecond},
}

// weir waits after a documented throttle of each preset's API, also for a POST, as long as the API requests. The caller
// does not see the throttle.
func TestPresetWaitsForDocumentedThrottle(t *testing.T) {
	for _, x := range throttles {
		t.Run(x.preset+"/"+x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC))) // seconds since the epoch must have ten digits
				n := memnet.New()
				defer n.Close()
				var came []time.Time
				up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if came = append(came, time.Now()); len(came) > 1 {
						w.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(w, `{"ok":true,"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}]}`)
						return
					}
					for name, value := range x.headers {
						w.Header().Set(name, epoch(value))
					}
					w.WriteHeader(x.status)
					_, _ = io.WriteString(w, epoch(x.answer))
				}))
				defer serveInside(t, n, fmt.Sprintf("upstreams: {up: {preset: %s, url: %q}}\n", x.preset, up))()
				client := &http.Client{Transport: n.Transport()}
				defer client.CloseIdleConnections()
				name, value, _ := strings.Cut(x.header, ": ")
				if status := send(t, client, x.method, "http://localhost/up"+x.path, x.body, map[string]string{name: value, "Content-Type": "application/json"}); status != http.StatusOK {
					t.Errorf("status %d", status)
				}
				if len(came) != 2 {
					t.Fatalf("%d attempts, want 2", len(came))
				}
				waited, most := came[1].Sub(came[0]), x.wait+x.wait/10+5*time.Second
				if x.wait == 0 {
					most = 2 * time.Second
				}
				if waited < x.wait || waited > most {
					t.Errorf("repeated after %v, want %v to %v", waited, x.wait, most)
				}
			})
		})
	}
}

// epoch inserts times into a header or body: %EPOCH+n% is the time in n seconds, as seconds since the epoch.
func epoch(text string) string {
	before, rest, ok := strings.Cut(text, "%EPOCH+")
	if !ok {
		return text
	}
	seconds, after, _ := strings.Cut(rest, "%")
	d, _ := time.ParseDuration(seconds + "s")
	return before + fmt.Sprint(time.Now().Add(d).Unix()) + after
}

// Many calls through a preset reach the API within its published limits, counted in any window.
func TestPresetKeepsPublishedLimits(t *testing.T) {
	for _, x := range []struct {
		preset, method, path string
		calls, most          int
		window               time.Duration
	}{
		{"gitlab", "GET", "/api/v4/projects", 2500, 2000, time.Minute},
		{"gitlab", "POST", "/api/v4/projects/1/issues", 300, 200, time.Minute},
		{"cloudflare", "GET", "/client/v4/zones", 1500, 1200, 5 * time.Minute},
		{"cloudflare", "POST", "/client/v4/graphql", 400, 320, 5 * time.Minute},
		{"stripe", "GET", "/v1/balance", 500, 125, time.Second}, // a burst of 25 and 100 per second
		{"stripe", "POST", "/v1/charges", 100, 35, time.Second},
		{"shopify", "GET", "/admin/api/2026-10/orders.json", 60, 160, time.Minute}, // 40 and 2 per second
		{"slack", "GET", "/api/conversations.history", 60, 60, time.Minute},
		{"slack", "GET", "/api/users.list", 30, 25, time.Minute},
		{"github", "POST", "/repos/a/b/issues", 120, 80, time.Minute},
	} {
		t.Run(x.preset+x.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				var mu sync.Mutex
				var came []time.Time
				up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					mu.Lock()
					came = append(came, time.Now())
					mu.Unlock()
				}))
				defer serveInside(t, n, fmt.Sprintf("upstreams: {up: {preset: %s, url: %q}}\n", x.preset, up))()
				client := &http.Client{Transport: n.Transport()}
				defer client.CloseIdleConnections()
				var wg sync.WaitGroup
				var made atomic.Int64
				for range 100 {
					wg.Go(func() {
						for made.Add(1) <= int64(x.calls) {
							if status := send(t, client, x.method, "http://localhost/up"+x.path, "", map[string]string{"Authorization": "Bearer t"}); status != http.StatusOK {
								t.Errorf("status %d", status)
							}
						}
					})
				}
				wg.Wait()
				for i := x.most; i < len(came); i++ {
					if d := came[i].Sub(came[i-x.most]); d < x.window {
						t.Fatalf("%d calls in %v, want %d at most in %v", x.most+1, d, x.most, x.window)
					}
				}
			})
		})
	}
}
