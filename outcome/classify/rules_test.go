package classify

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/outcome"
)

func TestRules(t *testing.T) {
	r := Rules{
		Throttled: []string{"420", "Busy"},
		Failed:    []string{"404", "429", "connection refused", "canceled"},
		Rejected:  []string{"500", "SlowDown"},
	}
	tests := []struct {
		name string
		got  outcome.Outcome
		want outcome.Outcome
	}{
		{"status to throttled is undone", r.HTTP(Response{Status: 420}), throttle("420")},
		{"status to failed", r.HTTP(Response{Status: 404}), fails("404")},
		{"what was a throttle proves nothing now", r.HTTP(Response{Status: 429}), fails("429")},
		{"code beats status", r.HTTP(Response{Status: 500, Body: []byte(`{"code":"Busy"}`)}), throttle("Busy")},
		{"code beats code", r.HTTP(Response{Status: 503, Body: []byte(`<Error><Code>SlowDown</Code></Error>`)}), undoneNot(reject("SlowDown"))},
		{"advice to retry falls", r.HTTP(Response{Status: 500, Header: headers("x-should-retry: true")}), reject("500")},
		{"no rule", r.HTTP(Response{Status: 502}), fails("502")},
		{"ok", r.HTTP(Response{Status: 200}), ok()},
		{"same class keeps its proof", r.Error(t.Context(), syscall.ECONNREFUSED), neverSent(fails("connection refused"))},
		{"unknown by code", r.Error(t.Context(), context.Canceled), fails("canceled")},
		{"a caller that left stays one", r.Apply(outcome.Outcome{Class: outcome.Canceled, Code: "canceled"}, 0), outcome.Outcome{Class: outcome.Canceled, Code: "canceled"}},
		{"success made a failure", Rules{Failed: []string{"204"}}.HTTP(Response{Status: 204}), fails("204")},
		{"zero rules", Rules{}.HTTP(Response{Status: 429}), throttle("429")},
	}
	for _, tt := range tests {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", tt.name, tt.got, tt.want)
		}
	}
}

func undoneNot(o outcome.Outcome) outcome.Outcome {
	o.Undone = false
	return o
}

func TestValidateReportsEverythingAtOnce(t *testing.T) {
	r := Rules{Throttled: []string{"", "429"}, Failed: []string{"99", "600", "429"}, Rejected: []string{" 500", "42901", "Novel", "no such host"}}
	err := r.Validate()
	if err == nil {
		t.Fatal("got nil")
	}
	want := []string{`throttled[0] ""`, `failed[0] "99"`, `failed[1] "600"`, `failed[2] "429"`, `rejected[0] " 500"`}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is missing in:\n%v", w, err)
		}
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != len(want) {
		t.Errorf("got %d complaints, want %d:\n%v", got, len(want), err)
	}
	if err := (Rules{}).Validate(); err != nil {
		t.Errorf("zero rules: %v", err)
	}
}

// A rule for a number applies to a number that is the code of an error.
func TestRulesForCodesThatAreNumbers(t *testing.T) {
	r := Rules{Throttled: []string{"99991401", "42901"}, Failed: []string{"5001"}}
	for body, want := range map[string]outcome.Outcome{
		`{"code":99991401,"msg":"x"}`:           {Class: outcome.Throttled, Code: "99991401"},
		`{"error":{"code":42901}}`:              {Class: outcome.Throttled, Code: "42901"},
		`{"code":"42901"}`:                      {Class: outcome.Throttled, Code: "42901"},
		`{"error":{"code":5001,"message":"x"}}`: {Class: outcome.Failed, Code: "5001"},
		`{"code":42902}`:                        {Class: outcome.Rejected, Code: "400"},
		`{"count":42901}`:                       {Class: outcome.Rejected, Code: "400"},
		`42901`:                                 {Class: outcome.Rejected, Code: "400"},
	} {
		o := r.HTTP(Response{Method: "GET", Status: 400, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)})
		if o.Class != want.Class || o.Code != want.Code {
			t.Errorf("%s: %v %q, want %v %q", body, o.Class, o.Code, want.Class, want.Code)
		}
	}
}

func TestErrorsInRecordsAreData(t *testing.T) {
	const record = `{"id":"b2","custom_id":"r2","response":null,"error":{"code":"batch_expired","message":"x"}}`
	for _, c := range []struct {
		header http.Header
		body   string
		failed bool
	}{
		{http.Header{"Content-Type": {"application/jsonl"}}, record + "\n" + record + "\n", false},
		{http.Header{"Content-Type": {"application/x-ndjson"}}, `{"custom_id":"r2","error":{"message":"x"}}` + "\n", false},
		{http.Header{"Content-Type": {"application/x-ndjson"}, "Last-Modified": {"x"}}, `{"error":"x"}` + "\n", false},
		{http.Header{"Content-Type": {"application/x-ndjson"}, "Content-Disposition": {"attachment"}}, `{"error":"x"}` + "\n", false},
		{http.Header{"Content-Type": {"application/x-ndjson"}}, `{"response":"a"}` + "\n" + `{"error":"x"}` + "\n", true},
		{http.Header{"Content-Type": {"application/x-ndjson"}}, `{"done":false,"error":{"code":"x"}}` + "\n", true},
	} {
		failed := false
		if s := NewStream(c.header); s != nil {
			s.Feed([]byte(c.body))
			s.End()
			_, failed = s.Failed()
		}
		if failed != c.failed {
			t.Errorf("%v %s: failed %v, want %v", c.header, c.body, failed, c.failed)
		}
	}
}
