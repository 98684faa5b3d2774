package classify

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

func TestRateLimitHeaders(t *testing.T) {
	type levels = []outcome.Level
	tests := []struct {
		name  string
		lines []string
		want  levels
	}{
		{
			"OpenAI",
			[]string{
				"x-ratelimit-limit-requests: 500", "x-ratelimit-remaining-requests: 499", "x-ratelimit-reset-requests: 120ms",
				"x-ratelimit-limit-tokens: 30000", "x-ratelimit-remaining-tokens: 29984", "x-ratelimit-reset-tokens: 1h2m3.5s",
			},
			levels{
				{Name: "requests", Limit: 500, Remaining: 499, Reset: 120 * time.Millisecond},
				{Name: "tokens", Limit: 30000, Remaining: 29984, Reset: time.Hour + 2*time.Minute + 3500*time.Millisecond},
			},
		},
		{
			"Azure OpenAI, whole seconds",
			[]string{"x-ratelimit-limit-tokens: 1000", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 55"},
			levels{{Name: "tokens", Limit: 1000, Remaining: 0, Reset: 55 * time.Second}},
		},
		{
			"Anthropic, against its own Date",
			[]string{
				"Date: Fri, 20 Nov 2026 11:00:00 GMT",
				"anthropic-ratelimit-requests-limit: 50", "anthropic-ratelimit-requests-remaining: 49", "anthropic-ratelimit-requests-reset: 2026-11-20T11:00:01Z",
				"anthropic-ratelimit-tokens-limit: 90000", "anthropic-ratelimit-tokens-remaining: 80000", "anthropic-ratelimit-tokens-reset: 2026-11-20T12:00:05+01:00",
				"anthropic-ratelimit-input-tokens-limit: 50000", "anthropic-ratelimit-input-tokens-remaining: 49000", "anthropic-ratelimit-input-tokens-reset: 2026-11-20T11:00:02Z",
				"anthropic-ratelimit-output-tokens-limit: 10000", "anthropic-ratelimit-output-tokens-remaining: 10000", "anthropic-ratelimit-output-tokens-reset: 2026-11-20T10:59:00Z",
			},
			levels{
				{Name: "requests", Limit: 50, Remaining: 49, Reset: time.Second},
				{Name: "tokens", Limit: 90000, Remaining: 80000, Reset: 5 * time.Second},
				{Name: "input-tokens", Limit: 50000, Remaining: 49000, Reset: 2 * time.Second},
				{Name: "output-tokens", Limit: 10000, Remaining: 10000, Reset: 0},
			},
		},
		{
			"Anthropic subscription, epoch seconds",
			[]string{"anthropic-ratelimit-unified-status: allowed", "anthropic-ratelimit-unified-reset: 1795176060"},
			levels{{Name: "unified", Remaining: -1, Reset: time.Minute}},
		},
		{
			"IETF draft 08 to 10",
			[]string{`RateLimit-Policy: "burst";q=100;w=60;qu="requests";pk=:cHNsZTE=:, "daily";q=1000;w=86400`, `RateLimit: "burst";r=50;t=30`},
			levels{
				{Name: "burst", Limit: 100, Remaining: 50, Reset: 30 * time.Second, Window: time.Minute},
				{Name: "daily", Limit: 1000, Remaining: -1, Window: 24 * time.Hour},
			},
		},
		{
			"r may be missing, several lines, tokens",
			[]string{`RateLimit: default;t=5`, `RateLimit: "a\"b";r=3`},
			levels{
				{Name: "default", Remaining: -1, Reset: 5 * time.Second},
				{Name: `a"b`, Remaining: 3},
			},
		},
		{"a mistake spoils the field", []string{`RateLimit: "burst";r=50;t=30,`}, nil},
		{"an endless wait is clamped", []string{`RateLimit: "x";r=0;t=999999999999999`}, levels{{Name: "x", Reset: MaxAfter}}},
		{"IETF draft 07", []string{"RateLimit: limit=100, remaining=50, reset=5"}, levels{{Limit: 100, Remaining: 50, Reset: 5 * time.Second}}},
		{
			"IETF draft 06",
			[]string{"RateLimit-Limit: 100, 100;w=60, 5000;w=3600", "RateLimit-Remaining: 42", "RateLimit-Reset: 12"},
			levels{{Limit: 100, Remaining: 42, Reset: 12 * time.Second, Window: time.Minute}},
		},
		{
			"IETF draft 06 with a policy",
			[]string{"RateLimit-Limit: 10", "RateLimit-Policy: 10;w=1, 50;w=60", "RateLimit-Remaining: 9", "RateLimit-Reset: 1"},
			levels{{Limit: 10, Remaining: 9, Reset: time.Second, Window: time.Second}},
		},
		{"delta", []string{"X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 45"}, levels{{Limit: 60, Remaining: 3, Reset: 45 * time.Second}}},
		{"epoch seconds", []string{"X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 1795176045"}, levels{{Remaining: 3, Reset: 45 * time.Second}}},
		{"epoch milliseconds", []string{"X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 1795176045000"}, levels{{Remaining: 3, Reset: 45 * time.Second}}},
		{"past", []string{"X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 1700000000"}, levels{{Remaining: 3}}},
		{"below nothing", []string{"X-RateLimit-Remaining: -3", "X-RateLimit-Reset: -3"}, levels{{Remaining: 0}}},
		{"nonsense", []string{"X-RateLimit-Remaining: many"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := HTTP(Response{Status: 200, Header: headers(tt.lines...), Now: now}).Hint.Limits
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestStructuredFieldMistakes(t *testing.T) {
	for _, s := range []string{
		`"a`, `"a\x"`, `a;`, `a;1`, `a;k=`, `a,`, `,a`, `a b`, `(a b)`, `1.`, `1.2345`,
		`1234567890123456`, `-`, `:a`, `?2`, `@`, "\"\x7f\"", `é`, `k=`,
	} {
		if got := parseList(s); got != nil {
			t.Errorf("parseList(%q) = %+v, want nothing", s, got)
		}
	}
	if got := parseList(strings.Repeat("a,", maxItems) + "a"); got != nil {
		t.Errorf("%d items are not too many", len(got))
	}
	for _, s := range []string{`a`, `a;k`, `a;k=?1;l=:YQ==:;m=@17;n="x";o=1.5;p=-1`, `*a/b:c`, `k=1;w=2`, "a ,\tb", `"\\"`} {
		if got := parseList(s); got == nil {
			t.Errorf("parseList(%q) is nothing", s)
		}
	}
}
