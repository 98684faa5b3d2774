package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// paced returns an upstream with a limit for all, a limit per tenant, and two operations.
func paced(t testing.TB) *weir.Upstream {
	rate := bucket.Rate{Amount: 1000, Per: time.Second, Burst: 1000}
	return upstream(t, "s3", weir.Policy{
		Operations: []weir.Operation{{Name: "put"}, {Name: "get"}},
		Limits:     []limit.Limit{{Name: "all", Rate: rate}, {Name: "tenant", Scope: "tenant", Rate: rate}},
	})
}

// An order over HTTP pauses the named calls, is shown, and can be lifted.
func TestPausesAreOrderedByHand(t *testing.T) {
	call := weir.Call{Operation: "put", Keys: map[string]string{"tenant": "acme"}, Pool: "k/m"}
	others := []weir.Call{{Operation: "get", Keys: map[string]string{"tenant": "other"}, Pool: "k/n"}}
	for _, c := range []struct {
		names  string
		want   Pause
		others bool // are paused too
	}{
		{``, Pause{Of: "upstream"}, true},
		{`"limit":"all"`, Pause{Of: "limit", Limit: "all"}, true},
		{`"limit":"tenant"`, Pause{Of: "limit", Limit: "tenant"}, true},
		{`"limit":"tenant","key":"acme"`, Pause{Of: "key", Limit: "tenant", Scope: "tenant", Key: "acme"}, false},
		{`"pool":"k/m"`, Pause{Of: "pool", Pool: "k/m"}, false},
		{`"operation":"put"`, Pause{Of: "operation", Operation: "put"}, false},
	} {
		u := paced(t)
		h := page(t, u).Handler()
		order := func(do string) string {
			return strings.ReplaceAll(fmt.Sprintf(`{"upstream":"s3","do":%q,%s}`, do, c.names), ",}", "}")
		}
		for _, long := range []string{"5m", ""} {
			text := order("pause")
			if long != "" {
				text = strings.Replace(text, "}", `,"for":"5m"}`, 1)
			}
			w := ask(h, "POST", "/v1/pause", text)
			var got Upstream
			if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != 200 || err != nil || len(got.Pauses) != 1 || got.PausesInAll != 1 {
				t.Fatalf("%s: %d %s", text, w.Code, w.Body)
			}
			p := got.Pauses[0]
			if long == "" && p.LeftMS != -1 || long != "" && (p.LeftMS < 290_000 || p.LeftMS > 300_000) {
				t.Errorf("%s: left %d ms", text, p.LeftMS)
			}
			p.LeftMS, c.want.Reason = 0, "manual"
			if p != c.want {
				t.Errorf("%s: it looks like %+v, want %+v", text, p, c.want)
			}
			if d := try(u, call); d.Allowed || d.Reason != weir.Paused {
				t.Errorf("%s: %+v", text, d)
			}
			for _, other := range others {
				if d := try(u, other); d.Allowed == c.others {
					t.Errorf("%s: another is allowed: %v", text, d.Allowed)
				}
			}
		}
		w := ask(h, "POST", "/v1/pause", order("resume"))
		var got Resumed
		if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != 200 || err != nil || got.Lifted != 1 || len(got.Pauses) != 0 || got.Name != "s3" {
			t.Errorf("%s: %d %s", order("resume"), w.Code, w.Body)
		}
		if d := try(u, call); !d.Allowed {
			t.Errorf("%s: %+v", order("resume"), d)
		}
	}
}

func TestOrdersToPauseThatCannotBe(t *testing.T) {
	h := page(t, paced(t)).Handler()
	for order, says := range map[string]string{
		``:                              `{\"upstream\":\"s3\",\"do\":\"pause\",\"limit\":\"put\",\"for\":\"5m\"}`,
		`{"upstream":"s3","do":"stop"}`: `do \"stop\": want pause or resume`,
		`{"upstream":"s3"}`:             `want pause or resume`,
		`{"upstream":"s3","do":"pause","until":"5m"}`:             `until`,
		`{"upstream":"s3","do":"pause","for":"5"}`:                `for \"5\": want a duration such as 5m`,
		`{"upstream":"s3","do":"pause","for":"-5m"}`:              `want a duration`,
		`{"upstream":"s3","do":"pause","for":"0s"}`:               `want a duration`,
		`{"upstream":"s3","do":"pause","for":"10000h"}`:           `up to 31 days`,
		`{"upstream":"s3","do":"resume","for":"5m"}`:              `only \"do\": \"pause\" has a duration`,
		`{"upstream":"s3","do":"pause","limit":"put"}`:            `limit \"put\": unknown limit; want one of all, tenant`,
		`{"upstream":"s3","do":"resume","limit":"put"}`:           `limit \"put\": unknown limit; want one of all, tenant`,
		`{"upstream":"s3","do":"pause","limit":"all","key":"x"}`:  `limit all has no keys; leave key out`,
		`{"upstream":"s3","do":"pause","key":"x"}`:                `also set limit, to the limit that the key belongs to`,
		`{"upstream":"s3","do":"pause","operation":"list"}`:       `s3 has no such operation; want one of default, get, put`,
		`{"upstream":"s3","do":"pause","pool":""}`:                `pool: must not be empty`,
		`{"upstream":"s3","do":"pause","pool":"x","limit":"all"}`: `set at most one of them`,
		`{"upstream":"s3","do":"pause"}{"upstream":"s3"}`:         `more than one JSON value`,
	} {
		if w := ask(h, "POST", "/v1/pause", order); w.Code != 400 || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s, want 400 and %s", order, w.Code, w.Body, says)
		}
	}
	if w := ask(h, "POST", "/v1/pause", `{"upstream":"else","do":"pause"}`); w.Code != 404 {
		t.Errorf("another upstream: %d %s", w.Code, w.Body)
	}
	if w := ask(h, "POST", "/v1/pause", `{"upstream":"s3","do":"pause"}`, "Sec-Fetch-Site: cross-site"); w.Code != 403 {
		t.Errorf("from another site: %d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/v1/pause", ""); w.Code != 405 {
		t.Errorf("GET: %d", w.Code)
	}
}
