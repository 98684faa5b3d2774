package llmsim

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

const claude = "anthropic.claude-3-haiku-20240307-v1:0"

func bedrockClient(s *Server, secret string) *bedrockruntime.Client {
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(s.URL), RetryMaxAttempts: 1, HTTPClient: &http.Client{Transport: plainBodies{s.client().Transport}},
		Credentials: credentials.NewStaticCredentialsProvider("AKIDSIM", secret, "token"),
	})
}

// plainBodies hides the WriteTo of the AWS SDK's bodies. After the SDK has closed a body, its WriteTo fails with io.EOF where
// Read ends normally. If net/http checks only then for more bytes than declared, it takes this for a failed write and closes
// the connection during the response.
type plainBodies struct{ http.RoundTripper }

func (p plainBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.Clone(r.Context())
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return p.RoundTripper.RoundTrip(r)
}

func verified(c Config) Config {
	v := &sigtest.Verifier{Secrets: map[string]string{"AKIDSIM": "right"}}
	c.Verify = func(r *http.Request) error { _, err := v.Verify(r); return err }
	return c
}

func turn(text string) []types.Message {
	return []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: text}}}}
}

func TestConverseWithTheSDK(t *testing.T) {
	p, s := start(t, verified(Config{}))
	b := bedrockClient(s, "right")
	out, err := b.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String(claude), Messages: turn("héllo")})
	if err != nil {
		t.Fatal(err)
	}
	text := out.Output.(*types.ConverseOutputMemberMessage).Value.Content[0].(*types.ContentBlockMemberText).Value
	if text != claude+" heard: héllo" || out.StopReason != types.StopReasonEndTurn || *out.Usage.TotalTokens != *out.Usage.InputTokens+*out.Usage.OutputTokens {
		t.Errorf("%q %v %+v", text, out.StopReason, out.Usage)
	}
	if a := p.Log()[0]; a.Reserved != int64(*out.Usage.InputTokens)+4096 {
		t.Errorf("%d tokens reserved, want the input and the most that the model writes", a.Reserved)
	}
	if v := p.Violations(); len(v) > 0 {
		t.Errorf("violations %q", v)
	}
}

func TestConverseStreamWithTheSDK(t *testing.T) {
	p, s := start(t, verified(Config{}))
	b := bedrockClient(s, "right")
	stream := func() (text string, usage *types.TokenUsage, err error) {
		out, err := b.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String(claude), Messages: turn("héllo")})
		if err != nil {
			return "", nil, err
		}
		events := out.GetStream()
		for e := range events.Events() {
			switch e := e.(type) {
			case *types.ConverseStreamOutputMemberContentBlockDelta:
				text += e.Value.Delta.(*types.ContentBlockDeltaMemberText).Value
			case *types.ConverseStreamOutputMemberMetadata:
				usage = e.Value.Usage
			}
		}
		return text, usage, errors.Join(events.Err(), events.Close())
	}
	text, usage, err := stream()
	if err != nil || text != claude+" heard: héllo" || usage == nil || *usage.OutputTokens == 0 {
		t.Errorf("%q %v %v", text, usage, err)
	}
	for _, events := range []int{0, 2} {
		p.Fault(Fault{Kind: StreamError, Status: 429, Events: events})
		if _, _, err := stream(); !isA[*types.ThrottlingException](err) {
			t.Errorf("after %d pieces: %v", events, err)
		}
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func TestInvokeWithTheSDK(t *testing.T) {
	_, s := start(t, verified(Config{}))
	b := bedrockClient(s, "right")
	body := []byte(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":50,"messages":[{"role":"user","content":"héllo"}]}`)
	out, err := b.InvokeModel(t.Context(), &bedrockruntime.InvokeModelInput{ModelId: aws.String(claude), Body: body, ContentType: aws.String("application/json")})
	if err != nil || at(t, string(out.Body), "content", 0, "text") != claude+" heard: héllo" {
		t.Errorf("%v", err)
	}
	for _, model := range []string{claude, "amazon.nova-lite-v1:0", "meta.llama3-8b-instruct-v1:0"} {
		in := body
		switch {
		case strings.Contains(model, "nova"):
			in = []byte(`{"messages":[{"role":"user","content":[{"text":"héllo"}]}]}`)
		case strings.Contains(model, "llama"):
			in = []byte(`{"prompt":"héllo"}`)
		}
		stream, err := b.InvokeModelWithResponseStream(t.Context(), &bedrockruntime.InvokeModelWithResponseStreamInput{ModelId: aws.String(model), Body: in, ContentType: aws.String("application/json")})
		if err != nil {
			t.Fatal(err)
		}
		text, last := "", ""
		for e := range stream.GetStream().Events() {
			last = string(e.(*types.ResponseStreamMemberChunk).Value.Bytes)
			for _, path := range [][]any{{"delta", "text"}, {"contentBlockDelta", "delta", "text"}, {"generation"}} {
				piece, _ := at(t, last, path...).(string)
				text += piece
			}
		}
		if err := stream.GetStream().Err(); err != nil || text != model+" heard: héllo" || at(t, last, "amazon-bedrock-invocationMetrics", "outputTokenCount") == nil {
			t.Errorf("%s: %v %q, last %s", model, err, text, last)
		}
	}
}

func TestErrorsOfBedrockWithTheSDK(t *testing.T) {
	p, s := start(t, verified(Config{Models: map[string]Model{claude: {}}}))
	ask := func(b *bedrockruntime.Client, model string) error {
		_, err := b.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String(model), Messages: turn("x")})
		return err
	}
	b := bedrockClient(s, "right")
	p.Fault(Fault{Kind: Throttle})
	if err := ask(b, claude); !isA[*types.ThrottlingException](err) {
		t.Error(err)
	}
	p.Fault(Fault{Kind: Broke})
	if err := ask(b, claude); !isA[*types.ServiceQuotaExceededException](err) {
		t.Error(err)
	}
	for status, is := range map[int]func(error) bool{500: isA[*types.InternalServerException], 503: isA[*types.ServiceUnavailableException], 408: isA[*types.ModelTimeoutException], 424: isA[*types.ModelErrorException]} {
		p.Fault(Fault{Kind: Error, Status: status})
		if err := ask(b, claude); !is(err) {
			t.Errorf("%d: %v", status, err)
		}
	}
	if err := ask(b, "nope"); !isA[*types.ValidationException](err) {
		t.Error(err)
	}
	if err := ask(bedrockClient(s, "wrong"), claude); err == nil || !strings.Contains(err.Error(), "InvalidSignatureException") {
		t.Error(err)
	}
}
