package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// limited writes a configuration with one upstream and the given limits.
func limited(t *testing.T, limits string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(path, []byte("upstreams:\n  api:\n    url: https://example.com\n    limits: "+limits+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExportOfLimits(t *testing.T) {
	good, bad := limited(t, "{x: 5/s}"), limited(t, "{x: {rate: 5/s, shape: rolling}}")
	const design = "../../examples/designs/chat.yaml"
	levels := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(levels, []byte("upstreams: {chat: {url: \"http://localhost:1\", preset: chat-levels}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args      []string
		code      int
		out, says string
	}{
		{[]string{"envoy-rules", "-config", good, "-domain", "edge"}, 0, "\ndomain: edge\n", "upstreams.api.limits.x: a bucket"},
		{[]string{"envoy", "-config", good, "-address", "weir:8083", "-upstream", "api"}, 0, "address: weir\n", "upstreams.api.limits.x: a bucket"},
		{[]string{"envoy", "-config", good}, 1, "", "set decide.grpc"},
		{[]string{"envoy-rules", "-config", bad}, 1, "", "weir.yaml:4: upstreams.api.limits.x: a rate limit service has no rolling windows"},
		{[]string{"envoy-rules", "-config", bad, "-upstream", "other"}, 1, "", `the file has no upstream "other"`},
		{[]string{"envoy-rules", "-config", good + "x"}, 1, "", "no such file"},
		{[]string{"apigateway", "-config", good}, 0, "AWS::ApiGateway::Stage", ""},
		{[]string{"apigateway", "-config", good, "-websocket"}, 0, "AWS::ApiGatewayV2::Stage", ""},
		{[]string{"apigateway", "-config", design, "-upstream", "chat"}, 0, "sendMessage:", "limits.month: not written"},
		{[]string{"apigateway", "-config", levels, "-websocket"}, 0, "$connect:", "limits.month: not written"},
		{[]string{"apigateway", "-config", levels}, 1, "", "--websocket"},
		{[]string{"apigateway", "-config", good, "-account-rate", "4"}, 1, "", "more than 4 a second"},
		{[]string{"envoy-rules", "-address", "weir:1"}, 2, "", "-address"},
	} {
		out, says, code := exporting(t, c.args...)
		if code != c.code || !strings.Contains(out, c.out) || c.out == "" && out != "" || !strings.Contains(says, c.says) {
			t.Errorf("weir export %v: code %d, %s\n%s; want code %d, %q and %q", c.args, code, says, out, c.code, c.out, c.says)
		}
	}
}
