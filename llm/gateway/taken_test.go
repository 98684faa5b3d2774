package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/sidecar/awsdialect"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// moody returns a provider that responds immediately, unless the question asks for something else.
func moody(t *testing.T) *upstreamFunc {
	var p *upstreamFunc
	p = provider(t, func(w http.ResponseWriter, r *http.Request) {
		_, bodies := p.requests()
		body := bodies[len(bodies)-1] // questions arrive one after the other
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(body, "a long one"):
			<-r.Context().Done()
		case strings.Contains(body, `"secret-model"`):
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error":{"message":"The project does not have access to model secret-model","type":"invalid_request_error","param":null,"code":"model_not_found"}}`)
		case strings.Contains(r.URL.Path, "secret-model"):
			w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message":"You don't have access to the model with the specified model ID."}`)
		case r.Header.Get("Authorization") == "Bearer junk":
			w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			if strings.Contains(body, "by another name") {
				w.Header().Set("X-Amzn-Errortype", "UnrecognizedClientException")
			}
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message":"Authentication failed: Please make sure your API Key is valid."}`)
		case strings.Contains(r.URL.Path, "/converse"):
			_, _ = io.WriteString(w, `{"output":{"message":{"role":"assistant","content":[{"text":"fine"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2,"totalTokens":5}}`)
		default:
			_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`)
		}
	})
	return p
}

// A caller's model, headers or short timeout never close the tier for other callers.
func TestOneCallerTakesTheModelFromNobody(t *testing.T) {
	signer, err := awsdialect.New(awsdialect.Options{Options: resign.Options{
		Service: "bedrock", Region: "us-east-1", Credentials: aws.CredentialsProvider(credentials.NewStaticCredentialsProvider("AKIDOFWEIR", "secret", "")),
	}})
	if err != nil {
		t.Fatal(err)
	}
	chat := func(model, text string) string {
		return `{"model":"` + model + `","messages":[{"role":"user","content":"` + text + `"}]}`
	}
	converse := func(text string) string {
		return `{"messages":[{"role":"user","content":[{"text":"` + text + `"}]}]}`
	}
	const at = "/model/anthropic.claude-3-haiku-20240307-v1:0/converse"
	for _, c := range []struct {
		name       string
		o          gateway.Options
		path, good string
		to, bad    string
		header     []string
	}{
		{name: "a model that weir's key may not use", o: gateway.Options{Key: "of-weir"}, path: completions, good: chat("gpt-4o", "hi"), to: completions, bad: chat("secret-model", "hi")},
		{name: "a model that weir's account may not use", o: gateway.Options{Inner: signer, Family: llm.Converse}, path: at, good: converse("hi"), to: "/model/secret-model/converse", bad: converse("hi")},
		{name: "a bad key of a caller's own", o: gateway.Options{Inner: signer, Family: llm.Converse}, path: at, good: converse("hi"), to: at, bad: converse("hi"), header: []string{"Authorization", "Bearer junk"}},
		{name: "a bad key by another name", o: gateway.Options{Inner: signer, Family: llm.Converse}, path: at, good: converse("hi"), to: at, bad: converse("by another name"), header: []string{"Authorization", "Bearer junk"}},
		{name: "no time", path: completions, good: chat("gpt-4o", "hi"), to: completions, bad: chat("gpt-4o", "a long one"), header: []string{gateway.TimeoutHeader, "300ms"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy, o := shipped(t, tiered)
			o.Key, o.Inner, o.Family = c.o.Key, c.o.Inner, c.o.Family
			b := before(t, o, policy, moody(t).url())
			mine := []string{"Authorization", ""}
			for range 3 {
				b.wants(b.post(c.path, c.good, mine...), gateway.TierHeader, "primary")
			}
			for range 4 {
				if a := b.post(c.to, c.bad, append(mine, c.header...)...); a.Header.Get(gateway.TierHeader) == "primary" {
					t.Fatalf("%d %s", a.StatusCode, a.body)
				}
			}
			b.wants(b.post(c.path, c.good, mine...), gateway.TierHeader, "primary")
		})
	}
}

// Two callers with too short timeouts for a slow model close its tier.
func TestTwoCallersInAHurryCloseATier(t *testing.T) {
	policy, o := shipped(t, tiered)
	o.Callers = callers(t)
	b := before(t, o, policy, moody(t).url())
	b.wants(b.chat("hi"), gateway.TierHeader, "primary")
	// The tier is tried again after one or two seconds. On a busy machine, one call may take that long.
	for range 5 {
		for i := range 8 {
			b.chat("a long one", gateway.TimeoutHeader, "150ms", "X-User", []string{"ann", "bob"}[i%2])
			if o.Cascade.View()[0].Phase == breaker.Open {
				break
			}
		}
		if v := o.Cascade.View()[0]; v.InARow == 0 && v.Phase == breaker.Closed {
			t.Fatalf("the tier has %+v", v)
		}
		if a := b.chat("hi"); a.Header.Get(gateway.TierHeader) != "primary" {
			return
		}
	}
	t.Error("the tier is open to all")
}

// A tier that uses weir's own credentials is closed if they are refused, also if a signer adds them.
func TestATierWhoseSignatureIsRefusedIsClosed(t *testing.T) {
	refused := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Errortype", "UnrecognizedClientException")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"message":"The security token included in the request is invalid."}`)
	})
	c, all := tiers(t, gateway.Tier{Upstream: "other"}, gateway.Tier{Messages: []string{"Sorry."}})
	origin := func(upstream string) (string, bool) { return "https://" + upstream, false }
	b := before(t, gateway.Options{Cascade: c, Tiers: all, Origin: origin}, quick(), provider(t, down).url(), elsewhere(t, gateway.Options{Inner: unsure{}}, refused.url()))
	for range 8 {
		b.chat("hi")
	}
	if v := c.View()[1]; v.Phase != breaker.Open || v.Failed == 0 {
		t.Errorf("the tier has %+v", v)
	}
}

// An unsure is a signer with an invalid signature.
type unsure struct{}

func (unsure) Hear(*http.Request, string) (httpx.Exchange, *refuse.Facts) { return signing{}, nil }

// The header of Azure's key may contain weir's token, which is not forwarded. weir's own key replaces it.
func TestAzureHasItsKeyWhereItsTokenWas(t *testing.T) {
	p := moody(t)
	const token = "a-token-of-weirs-own-0123456789"
	b := before(t, gateway.Options{}, quick(), p.url())
	u := elsewhere(t, gateway.Options{Key: "of-weir"}, p.url())
	u.Name = "chat"
	if err := b.p.SetAll(proxy.Access{Auth: &auth.Auth{Tokens: []auth.Token{{Name: "app", SHA256: auth.Hash(token)}}}}, []proxy.Upstream{u}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/openai/deployments/gpt-4o/chat/completions?api-version=2024-06-01", "/openai/v1/chat/completions"} {
		if a := b.post(path, `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`, "Api-Key", token, "Authorization", ""); a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		came, _ := p.requests()
		if h := came[len(came)-1].Header; h.Get("Api-Key") != "of-weir" || h.Get("Authorization") != "" {
			t.Errorf("%s: it came with %v", path, h)
		}
	}
}
