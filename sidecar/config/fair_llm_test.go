package config

import (
	"strings"
	"testing"
)

// The scope of fairness must be known. A scope without values would make all calls one flow.
func TestFairNeedsToKnowWhoCalls(t *testing.T) {
	for lines, want := range map[string]string{
		"upstreams:\n  chat: {preset: openai, fair: {by: user}}\n":                                           `"user": unknown scope`,
		"upstreams:\n  chat: {preset: openai, fair: user}\n":                                                 `"user": unknown scope`,
		"upstreams:\n  api: {url: https://h, fair: user}\n":                                                  `"user": unknown scope`,
		"callers: {keys: {tenant: \"header:X-Tenant\"}}\nupstreams:\n  chat: {preset: openai, fair: user}\n": "",
		"callers: true\nupstreams:\n  chat: {preset: openai, fair: user, llm: {callers: false}}\n":           `"user": unknown scope`,
		"callers: true\nupstreams:\n  chat: {preset: openai, fair: user}\n":                                  "",
		"upstreams:\n  chat: {preset: openai, fair: user, keys: {user: \"header:X-User\"}}\n":                "",
		"upstreams:\n  chat: {preset: openai}\n":                                                             "",
		"upstreams:\n  chat: {preset: openai, fair: caller}\n":                                               "",
	} {
		f, err := Parse("weir.yaml", []byte(lines), nil)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", lines, err)
		case want == "" && f.Upstreams[0].Policy.Fair.By == "":
			t.Errorf("%s: not fair", lines)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", lines, err, want)
		}
	}
}
