package wire_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/awsx/wire"
)

// A long poll ends late only if its retry is refused, so it must be repeatable.
func TestLongPollsMayBeRepeated(t *testing.T) {
	for _, name := range []string{"sqs.ReceiveMessage", "states.GetActivityTask", "swf.PollForActivityTask", "swf.PollForDecisionTask"} {
		service, operation, _ := strings.Cut(name, ".")
		if o := wire.Named(service, operation, false); !o.Safe || !o.Polls {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// A token makes a call repeatable only if it has a value.
func TestTokenMakesACallRepeatable(t *testing.T) {
	for _, c := range []struct {
		form, header string
		safe         bool
	}{
		{`{"ClientRequestToken":"a"}`, "", true},
		{`{"a": {"clientToken" : "a"}}`, "", true},
		{`{"a":"clientToken","b":{},"clientToken":"a"}`, "", true},
		{`{"ClientToken":""}`, "", false},
		{`{"ClientToken": null}`, "", false},
		{`{"Key":"ClientToken","Value":"a"}`, "", false},
		{`{"ClientTokenStatus":"a"}`, "", false},
		{"Action=RunInstances&ClientToken=a", "", true},
		{"Action=RunInstances&ClientToken=&MinCount=1", "", false},
		{"Action=RunInstances&ClientToken=", "", false},
		{"{}", "X-Amzn-Client-Token", true},
		{"{}", "X-Amz-Client-Token", true},
		{"{}", "X-Amzn-Request-Id", false},
		{"{}", "Amz-Sdk-Invocation-Id", false},
	} {
		h := http.Header{"X-Amz-Target": {"A.CreateThing"}}
		service := "thing"
		if strings.HasPrefix(c.form, "Action=") {
			h, service = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, "ec2"
		}
		if c.header != "" {
			h.Set(c.header, "a")
		}
		if o := wire.Recognize(wire.Request{Service: service, Method: "POST", Path: "/", Header: h, Form: []byte(c.form)}); o.Safe != c.safe {
			t.Errorf("%s %s: %+v, want safe %v", c.form, c.header, o, c.safe)
		}
	}
}

func TestTokenInQueryMakesACallRepeatable(t *testing.T) {
	for query, safe := range map[string]bool{"Action=RunInstances&ClientToken=a": true, "Action=RunInstances&ClientToken=": false, "Action=RunInstances": false, "Action=ListThings": true} {
		if o := wire.Recognize(wire.Request{Service: "ec2", Method: "GET", Path: "/", Query: query, Header: http.Header{}}); o.Safe != safe {
			t.Errorf("?%s: safe %v, want %v", query, o.Safe, safe)
		}
	}
}
