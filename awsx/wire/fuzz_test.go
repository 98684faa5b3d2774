package wire_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/awsx/wire"
	"github.com/seed1158cd35/weir/internal/refuse"
)

var kinds = []refuse.Kind{refuse.Limited, refuse.Unavailable, refuse.Exhausted, refuse.Invalid, refuse.TooLarge, refuse.GaveUp}

// For any request, the name is fit for a metric, and errors can be written.
func FuzzRecognize(f *testing.F) {
	f.Add("s3", "GET", "b.s3.amazonaws.com", "/a//b%2Fc", "list-type=2", "", "", "")
	f.Add("", "POST", "h", "/", "", "DynamoDB_20120810.GetItem", "application/x-amz-json-1.0", "")
	f.Add("sts", "POST", "h", "/", "Action=AssumeRole", "", "application/x-www-form-urlencoded", "Action=X")
	f.Fuzz(func(t *testing.T, service, method, host, path, query, target, content, form string) {
		h := http.Header{}
		if target != "" {
			h["X-Amz-Target"] = []string{target}
		}
		h["Content-Type"] = []string{content}
		o := wire.Recognize(wire.Request{Service: service, Method: method, Host: host, Path: path, Query: query, Header: h, Form: []byte(form)})
		if len(o.Name) > 100 || strings.ContainsAny(o.Name, " \n\"{}/") {
			t.Errorf("name %q", o.Name)
		}
		w := httptest.NewRecorder()
		e := wire.Error{Kind: kinds[len(path)%len(kinds)], Message: path, ID: "1", Final: len(query)%2 == 0}
		e.Write(w, o, method)
		if w.Code < 400 {
			t.Errorf("status %d", w.Code)
		}
		if p := wire.Prefix(path, 3); !strings.HasPrefix(path, p) || len(p) > 256 {
			t.Errorf("prefix %q of %q", p, path)
		}
	})
}

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		key   string
		depth int
		want  string
	}{{"a/b/c.txt", 1, "a/"}, {"a/b/c.txt", 2, "a/b/"}, {"a/b/c.txt", 9, "a/b/"}, {"c.txt", 1, ""}, {"a/b", 0, ""}, {"//x", 1, "/"}} {
		if got := wire.Prefix(c.key, c.depth); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.key, c.depth, got, c.want)
		}
	}
}

func BenchmarkRecognize(b *testing.B) {
	h := http.Header{"X-Amz-Target": {"DynamoDB_20120810.GetItem"}, "Content-Type": {"application/x-amz-json-1.0"}}
	for _, r := range []wire.Request{
		{Service: "dynamodb", Method: "POST", Path: "/", Header: h},
		{Service: "s3", Method: "PUT", Host: "s3.eu-west-1.amazonaws.com", Path: "/bucket/a/b/c.txt", Query: "partNumber=1&uploadId=x", Header: http.Header{}},
		{Service: "bedrock", Method: "POST", Path: "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse", Header: http.Header{}},
	} {
		b.Run(r.Service, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				wire.Recognize(r)
			}
		})
	}
}
