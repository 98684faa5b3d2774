package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed1158cd35/weir/llm/frame"
)

var sample = Answer{Text: strings.Repeat("ok \"é\" 日本語 😀\u2028\x00\n", 500), Model: "by", ID: "7", Created: time.Unix(1700000000, 0),
	Usage: Usage{Input: 12, Output: 7, CacheRead: 2, CacheWrite: 1, Said: true}, Meta: map[string]string{"tier": "static"}}

// events returns the data of server-sent events.
func events(t *testing.T, body []byte, separator string) (all []string) {
	t.Helper()
	for e := range strings.SplitSeq(strings.TrimSuffix(string(body), separator), separator) {
		for line := range strings.SplitSeq(e, "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				all = append(all, data)
			} else if !strings.HasPrefix(line, "event: ") {
				t.Fatalf("a line that is none of an event: %q", line)
			}
		}
	}
	return all
}

func TestAnswersSayTheText(t *testing.T) {
	for _, c := range []struct{ path, body, text, meta string }{
		{chatPath, `{"model":"m","n":2}`, "choices.1.message.content", "metadata.tier"},
		{"/v1/completions", `{"model":"m"}`, "choices.0.text", ""},
		{responsePath, `{"model":"m","metadata":{"a":"b"},"tools":null}`, "output.0.content.0.text", "metadata.tier"},
		{messagePath, `{"model":"m"}`, "content.0.text", "metadata.tier"},
		{geminiPath, `{}`, "candidates.0.content.parts.0.text", ""},
		{conversePath, `{}`, "output.message.content.0.text", "additionalModelResponseFields.tier"},
		{novaPath, `{}`, "output.message.content.0.text", ""},
		{"/model/amazon.titan/invoke", `{}`, "results.0.outputText", ""},
		{"/model/arn%3Ax/invoke", `{"anthropic_version":"v","messages":[]}`, "content.0.text", ""},
		{"/model/mistral.x/invoke", `{"prompt":"x"}`, "outputs.0.text", ""},
		{"/model/mistral.x/invoke", `{"messages":[]}`, "choices.0.message.content", ""},
		{"/model/meta.x/invoke", `{"prompt":"x"}`, "generation", ""},
		{"/model/cohere.x/invoke", `{"message":"x"}`, "text", ""},
	} {
		h, body := parse(t, c.path, c.body).Answer(sample)
		var v any
		if err := json.Unmarshal(body, &v); err != nil || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v %v", c.path, err, h)
			continue
		}
		if got := at(v, c.text); got != sample.Text {
			t.Errorf("%s: %s is %.60q", c.path, c.text, got)
		}
		if got := at(v, c.meta); c.meta != "" && got != "static" || c.meta == "" && bytes.Contains(body, []byte("static")) {
			t.Errorf("%s: meta data %v in %s", c.path, got, c.meta)
		}
	}
}

// at returns the value at a path of names and indexes in parsed JSON.
func at(v any, path string) any {
	for p := range strings.SplitSeq(path, ".") {
		switch w := v.(type) {
		case map[string]any:
			v = w[p]
		case []any:
			i := 0
			_, _ = fmt.Sscan(p, &i)
			if i >= len(w) {
				return nil
			}
			v = w[i]
		default:
			return nil
		}
	}
	return v
}

func TestStreamsSayTheText(t *testing.T) {
	for _, c := range []struct{ path, body, separator, delta, last string }{
		{chatPath, `{"model":"m","stream":true}`, "\n\n", "choices.0.delta.content", "[DONE]"},
		{chatPath, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, "\n\n", "choices.0.delta.content", "[DONE]"},
		{"/v1/completions", `{"model":"m","stream":true}`, "\n\n", "choices.0.text", "[DONE]"},
		{responsePath, `{"model":"m","stream":true,"instructions":"a","input":[ 1,
			"` + "\u2028\u0085" + `" ],"tools":[ ` + "\n" + ` ]}`, "\n\n", "delta", "response.completed"},
		{messagePath, `{"model":"m","stream":true}`, "\n\n", "delta.text", "message_stop"},
		{"/v1beta/models/m:streamGenerateContent?alt=sse", `{}`, "\r\n\r\n", "candidates.0.content.parts.0.text", "STOP"},
	} {
		h, body := parse(t, c.path, c.body).Answer(sample)
		all := events(t, body, c.separator)
		var text strings.Builder
		usage := false
		for _, e := range all {
			var v any
			if json.Unmarshal([]byte(e), &v) == nil {
				if s, ok := at(v, c.delta).(string); ok {
					text.WriteString(s)
				}
				usage = usage || at(v, "usage.total_tokens") == 19.0
			}
			if len(e) > 60000 || strings.ContainsAny(e, "\u2028\u0085\r\n") {
				t.Errorf("%s: an event that readers may stumble over: %.80q", c.path, e)
			}
		}
		if text.String() != sample.Text || !strings.Contains(all[len(all)-1], c.last) || !strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
			t.Errorf("%s %s: got %.60q, end %.80q, %v", c.path, c.body, text.String(), all[len(all)-1], h)
		}
		if asked := strings.Contains(c.body, "include_usage"); asked && !usage || !asked && usage && c.path == chatPath {
			t.Errorf("%s %s: usage %v", c.path, c.body, usage)
		}
	}
	_, body := parse(t, "/v1beta/models/m:streamGenerateContent", `{}`).Answer(sample)
	var v []any
	if err := json.Unmarshal(body, &v); err != nil || len(v) < 2 || at(v[len(v)-1], "candidates.0.finishReason") != "STOP" {
		t.Errorf("array: %v, %d elements", err, len(v))
	}
}

func TestAskingForUsageDoesNotChangeASynthesisedStream(t *testing.T) {
	r := parse(t, chatPath, `{"model":"m","stream":true}`)
	_, before := r.Answer(sample)
	r.AskUsage()
	if _, after := r.Answer(sample); !bytes.Equal(before, after) {
		t.Error("the caller would get a chunk that it has not asked for")
	}
}

// provider is an HTTP client that answers requests itself instead of using a connection.
type provider struct{}

func (provider) Do(hr *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	provider{}.ServeHTTP(w, hr)
	return w.Result(), nil
}

func (provider) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	route, _ := Recognize(hr.Method, hr.URL.EscapedPath(), hr.URL.RawQuery)
	body, _ := io.ReadAll(hr.Body)
	r, err := route.Parse(body)
	if err != nil {
		route.Refuse(w, Failure{Kind: Invalid, Message: err.Error()})
		return
	}
	if r.Question() == "refuse" {
		r.Refuse(w, Failure{Kind: Limited, Message: "later", RetryAfter: time.Second})
		return
	}
	h, b := r.Answer(sample)
	maps.Copy(w.Header(), h)
	if r.Question() == "cut" {
		first := int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3])
		end := bytes.NewBuffer(b[:first:first])
		_ = frame.WriteException(end, "throttlingException", []byte(`{"message":"cut"}`))
		b = end.Bytes()
	}
	_, _ = w.Write(b)
}

func bedrockClient() *bedrockruntime.Client {
	return bedrockruntime.New(bedrockruntime.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://bedrock.invalid"), RetryMaxAttempts: 1,
		HTTPClient: provider{}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

func ask(question string) []types.Message {
	return []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: question}}}}
}

func TestTheSDKForGoReadsConverse(t *testing.T) {
	c := bedrockClient()
	out, err := c.Converse(context.Background(), &bedrockruntime.ConverseInput{ModelId: aws.String("arn:aws:bedrock:us-east-1:1:inference-profile/x:0"), Messages: ask("hi")})
	if err != nil {
		t.Fatal(err)
	}
	m := out.Output.(*types.ConverseOutputMemberMessage)
	if text := m.Value.Content[0].(*types.ContentBlockMemberText).Value; text != sample.Text || *out.Usage.TotalTokens != 19 || *out.Usage.InputTokens != 9 {
		t.Errorf("got %.60q, %+v", text, out.Usage)
	}
	text, err := converse(c, "hi")
	if err != nil || text != sample.Text {
		t.Errorf("stream: got %.60q, %v", text, err)
	}
	for _, question := range []string{"refuse", "cut"} {
		if _, err := converse(c, question); !is[*types.ThrottlingException](err) {
			t.Errorf("%s: got %v", question, err)
		}
	}
}

func converse(c *bedrockruntime.Client, question string) (text string, err error) {
	out, err := c.ConverseStream(context.Background(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String("m"), Messages: ask(question)})
	if err != nil {
		return "", err
	}
	s := out.GetStream()
	defer s.Close()
	for e := range s.Events() {
		if d, ok := e.(*types.ConverseStreamOutputMemberContentBlockDelta); ok {
			text += d.Value.Delta.(*types.ContentBlockDeltaMemberText).Value
		}
	}
	return text, s.Err()
}

func TestTheSDKForGoReadsInvoke(t *testing.T) {
	c := bedrockClient()
	body := []byte(`{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`)
	out, err := c.InvokeModelWithResponseStream(context.Background(), &bedrockruntime.InvokeModelWithResponseStreamInput{ModelId: aws.String("us.amazon.nova-x"), Body: body})
	if err != nil {
		t.Fatal(err)
	}
	s := out.GetStream()
	defer s.Close()
	var text string
	for e := range s.Events() {
		var v any
		if err := json.Unmarshal(e.(*types.ResponseStreamMemberChunk).Value.Bytes, &v); err != nil {
			t.Fatal(err)
		}
		if piece, ok := at(v, "contentBlockDelta.delta.text").(string); ok {
			text += piece
		}
	}
	if s.Err() != nil || text != sample.Text || *out.ContentType != "application/json" {
		t.Errorf("got %.60q, %v", text, s.Err())
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
