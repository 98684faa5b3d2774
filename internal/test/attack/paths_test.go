//go:build unix

package attack

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// A caller writes a path that a server interprets as a model's call, and weir perhaps does not. Every call is counted in
// tokens, and the limit holds.
func TestAttackTokenLimitsByPath(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":500,"completion_tokens":500,"total_tokens":1000}}`)
	}))
	defer s.Close()
	w := served.Start(t, local+fmt.Sprintf(`
upstreams:
  gpt:
    url: %[1]q
    llm: {family: openai}
    max_wait: off
    limits: {tpd: {amount: 10000, every: day, unit: tokens}}
  inside: {url: "%[1]s/v1", llm: {family: anthropic}, max_wait: off, limits: {tpd: {amount: 3000, every: day, unit: tokens}}}
  named: {url: %[1]q, llm: {family: openai}, max_wait: off, limits: {one: {amount: 1, every: day, scope: model}}}
  shut: {url: %[1]q, llm: {family: openai}, undeclared: refuse}
  plain:
    url: %[1]q
    operations: {dear: {path: /dear}}
    limits: {dear: {amount: 5, every: day, operations: [dear]}}
    max_wait: off
%[2]s`, s.URL, bystander(t)))
	at := w.Serve.Listen
	const body = `{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`
	beside(t, at, func() {
		good := 0
		for i, path := range []string{
			"/v1/chat/completions", "/v1/chat/%63ompletions", "/v1/chat/completions/", "/v1/chat/completions;x=1", "/v1//chat/completions", "/v1/chat%2Fcompletions", "/V1/CHAT/COMPLETIONS",
			"/v1/chat/completions%20", "/v1/chat/%2563ompletions", "/v1/chat/completions%3Fx", "/v1/completion%73", "/v1/response%73/", "/v1/message%73",
		} {
			for _, method := range []string{"POST", "PUT", "PATCH", "GET"} {
				target := "/gpt" + path
				if i%2 == 1 {
					target = "/%67pt" + path
				}
				if resp := say(t, at, request(method, target, at, body)); resp.StatusCode == 200 {
					good++
				} else if resp.StatusCode != 429 {
					t.Errorf("%s %s: answered %s: %s", method, target, resp.Status, text(resp))
				}
			}
		}
		if good > 11 {
			t.Errorf("%d calls of 1,000 tokens went, of a limit of 10,000", good)
		}
		good = 0
		for _, path := range []string{"/messages", "/messages/", "/v1/messages", "//messages", "/message%73", "/chat/completions", "/completions"} {
			if resp := say(t, at, request("POST", "/inside"+path, at, body)); resp.StatusCode == 200 {
				good++
			}
		}
		if good > 4 {
			t.Errorf("%d calls of 1,000 tokens went behind the path of a URL, of a limit of 3,000", good)
		}
		good = 0
		for _, model := range []string{"gpt-4o", "GPT-4o", " gpt-4o", "gpt-4o ", `gpt\u002d4O`} {
			if resp := say(t, at, request("POST", "/named/v1/chat/completions", at, strings.Replace(body, "gpt-4o", model, 1))); resp.StatusCode == 200 {
				good++
			}
		}
		if good != 1 {
			t.Errorf("%d calls of a model went, of a limit of 1", good)
		}
		for _, path := range []string{"/v1/models", "/v1/files", "/v1/fine_tuning/jobs", "/anything"} {
			if resp := say(t, at, request("POST", "/shut"+path, at, "{}")); resp.StatusCode != 403 {
				t.Errorf("%s, which is closed: answered %s", path, resp.Status)
			}
		}
		went := 0
		for _, path := range []string{"/dear", "/%64ear", "//dear", "/dear/x", "/%2564ear", "/dear;a=b", "/./dear", "/x/../dear", `/\dear`, "/%2fdear", "/dea%72"} {
			for range 2 {
				if resp := say(t, at, request("GET", "/plain"+path, at, "")); resp.StatusCode == 200 {
					went++
				}
			}
		}
		if went > 5 {
			t.Errorf("%d calls of an operation went, of a limit of 5", went)
		}
	})
	if out, _ := served.Say(t, nil, "status", "-admin", w.Serve.Admin); !strings.Contains(out, "tpd") {
		t.Errorf("status: %s", out)
	}
}

// A caller writes a request for AWS that the service interprets as an operation with a limit, and weir perhaps as another one:
// in ignored fields, in a body that weir may not parse, or in the host.
func TestAttackOperationsOfAWS(t *testing.T) {
	v := newVictim(t)
	const limit = "max_wait: off, limits: {l: {amount: 1, every: day, operations: [%s]}}"
	w := served.Start(t, local+fmt.Sprintf(`
upstreams:
  s3: {url: %[1]q, aws: {service: s3, region: eu-west-1}, `+fmt.Sprintf(limit, "PutObject")+`}
  bucket: {url: %[1]q, aws: {service: s3, region: eu-west-1}, max_wait: off, limits: {l: {amount: 1, every: day, scope: bucket}}}
  inside: {url: "%[1]s/bucket", aws: {service: s3, region: eu-west-1}, max_wait: off, limits: {l: {amount: 1, every: day, scope: bucket}}}
  ec2: {url: %[1]q, aws: {service: ec2, region: eu-west-1}, `+fmt.Sprintf(limit, "RunInstances")+`}
  drs: {url: %[1]q, aws: {service: drs, region: eu-west-1}, `+fmt.Sprintf(limit, "StartRecovery")+`}
  ddb: {url: %[1]q, aws: {service: dynamodb, region: eu-west-1}, `+fmt.Sprintf(limit, "PutItem")+`}
%[2]s`, v.url, bystander(t)), keys...)
	at := w.Serve.Listen
	_, port, _ := net.SplitHostPort(at)
	const run, form = "Action=RunInstances&MinCount=1", "Content-Type: application/x-www-form-urlencoded"
	other := []string{"X-Amz-Target: A.DescribeThings", "Smithy-Protocol: rpc-v2-cbor", "X-HTTP-Method-Override: GET"}
	beside(t, at, func() {
		plain := func(method, path, body string, fields ...string) string {
			return request(method, path, at, body, fields...)
		}
		for _, c := range []struct {
			name string
			ways []string
		}{
			{"PutObject", []string{
				plain("PUT", "/s3/b/k", "x"), plain("PUT", "/s3/b/k", "x", other[0]), plain("PUT", "/s3/b/x/operation/GetObject", "x", other[1]), plain("PUT", "/s3/b/k", "x", other[2]),
				plain("PUT", "/s3//b/k", "x"), plain("PUT", "/s3/b%2Fk", "x"), plain("PUT", "/s3/b/k?x-id=GetObject", "x"), plain("put", "/s3/b/k", "x"), plain("PUT", "/s3/b/k", "x", form),
			}},
			{"a bucket", []string{
				plain("PUT", "/bucket/b/k", "x"), request("PUT", "/bucket/b/k", "other.s3.localhost:"+port, "x"), request("GET", "/bucket/b/k", "more.s3-x.localhost", ""), plain("GET", "/bucket/%62/k", ""), plain("GET", "/bucket//b", ""),
			}},
			{"a bucket in the URL", []string{plain("PUT", "/inside/k", "x"), plain("PUT", "/inside/other/k", "x"), plain("GET", "/inside/", "")}},
			{"RunInstances", []string{
				plain("POST", "/ec2/", run, form), plain("POST", "/ec2/", run), plain("POST", "/ec2/", run, "Content-Type: Application/X-WWW-Form-Urlencoded ; charset=utf-8"), plain("POST", "/ec2/", run, form, other[0]), plain("POST", "/ec2/", run, form, other[1]),
				plain("POST", "/ec2/", run, form, "Expect: 100-continue"), plain("POST", "/ec2/", run+"&UserData="+strings.Repeat("a", 70<<10), form), plain("POST", "/ec2/", "UserData="+strings.Repeat("a", 70<<10)+"&"+run, form),
				"POST /ec2/ HTTP/1.1\r\nHost: " + at + "\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(run), run),
				plain("POST", "/ec2/", "Action=DescribeInstances&"+run, form), plain("POST", "/ec2/?Action=DescribeInstances", run, form), plain("GET", "/ec2/?"+run, ""), plain("GET", "/ec2/?%41ction=RunInstances", ""),
			}},
			{"StartRecovery", []string{plain("POST", "/drs/StartRecovery", "{}"), plain("POST", "/drs/StartRecovery", "{}", other[0]), plain("POST", "/drs/StartRecovery", "{}", other[1]), plain("POST", "/drs//StartRecovery/", "{}")}},
			{"PutItem", []string{
				plain("POST", "/ddb/", "{}", "X-Amz-Target: DynamoDB_20120810.PutItem"), plain("POST", "/ddb/", "{}", "X-Amz-Target: DynamoDB_20120810.GetItem", "X-Amz-Target: DynamoDB_20120810.PutItem"),
				plain("POST", "/ddb/", "{}", "X-Amz-Target: DynamoDB_20120810.PutItem", other[1]), plain("POST", "/ddb/service/DynamoDB_20120810/operation/GetItem", "{}", "X-Amz-Target: DynamoDB_20120810.PutItem", other[1]),
			}},
		} {
			for i, way := range c.ways {
				resp := say(t, at, way)
				if resp.StatusCode == http.StatusContinue {
					continue // only arrived requests count
				}
				if i == 0 && resp.StatusCode != 200 {
					t.Errorf("%s: answered %s: %s", c.name, resp.Status, text(resp))
				}
			}
			if got := v.take(); len(got) != 1 {
				for _, r := range got[min(1, len(got)):] {
					t.Errorf("%s: past its limit of one: %s %s %v", c.name, r.method, r.uri, r.header)
				}
			}
		}
	})
}
