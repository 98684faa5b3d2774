package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// weir export apigateway says what differs before it changes anything, and changes it with -apply alone.
func TestExportToAPIGateway(t *testing.T) {
	changed, tag := 0, `"api"`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/usageplans":
			_, _ = io.WriteString(w, `{"item":[]}`)
		case r.Method == http.MethodPatch:
			changed++
			fallthrough
		default:
			_, _ = io.WriteString(w, `{"tags":{"weir":`+tag+`},"methodSettings":{"*/*":{"throttlingRateLimit":10000.0,"throttlingBurstLimit":5000}}}`)
		}
	}))
	defer s.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_ENDPOINT_URL_API_GATEWAY", s.URL)
	difference := "stage prod, all methods: 10000 a second, burst 5000 -> 5 a second, burst 5\n"
	for _, c := range []struct {
		limits, args string
		code         int
		out, says    string
		changed      int
	}{
		{"{x: 5/s}", "-diff -api abc -stage prod -region eu-west-1", 0, difference, "", 0},
		{"{x: 5/s}", "-apply -api abc -stage prod -region eu-west-1", 0, difference + "done\n", "", 1},
		{"{x: {rate: 10000/s, burst: 5000}}", "-apply -api abc -stage prod -region eu-west-1", 0, "nothing to change\n", "", 0},
		{"{x: 300/min}", "-diff -api abc -stage prod -region eu-west-1", 0, "burst 5\n", "which is not the same", 0},
		{"{x: 5/s}", "-apply -api abc", 2, "", "want -api and -stage", 0},
		{"{x: {rate: 5/s, shape: rolling}}", "-apply -api abc -stage prod -region eu-west-1", 1, "", "no rolling windows", 0},
		{"{x: }}", "-apply -api abc -stage prod -region eu-west-1", 1, "", "weir.yaml", 0},
	} {
		changed = 0
		out, says, code := exporting(t, append([]string{"apigateway", "-config", limited(t, c.limits)}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.HasSuffix(out, c.out) || c.out == "" && out != "" || !strings.Contains(says, c.says) || changed != c.changed {
			t.Errorf("%s %s: code %d, %q, %q, %d changes; want code %d, %q, %q, %d", c.limits, c.args, code, out, says, changed, c.code, c.out, c.says, c.changed)
		}
	}
}
