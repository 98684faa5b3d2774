package gateway_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// The cascade's deadline does not cut a stream.
func TestTheDeadlineIsForTheBeginning(t *testing.T) {
	t.Parallel()               // waits for its deadline
	const in = 4 * time.Second // enough time for the start, even on a busy machine
	plan := cascade.Config{Deadline: in, Tiers: []cascade.TierConfig{{Name: "primary", Confidence: 1}, {Name: "message", Instant: true}}}
	c, err := cascade.New(plan, cascade.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const chunk = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"finish_reason\":%s}]}\n\n"
	slow := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, chunk, "early, ", "null")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(in + time.Millisecond): // after the cascade's deadline
		case <-r.Context().Done():
		}
		fmt.Fprintf(w, chunk, "late", `"stop"`)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	b := before(t, gateway.Options{Cascade: c, Tiers: []gateway.Tier{{}, {Messages: []string{"Sorry."}}}}, quick(), slow.url())
	if a := b.stream("hi"); a.err != nil || a.says(t) != "early, late" {
		t.Errorf("%v: %s", a.err, a.body)
	}
}

// An attempt that fails inside its stream is counted once, and so is the next one.
func TestASecondAttemptIsSettledOnce(t *testing.T) {
	p := quick()
	p.Retry.Attempts = 2
	p.Limits = []limit.Limit{tokenLimit(1, time.Minute, 100_000)}
	callers := callersBy(t, func(*http.Request) (string, error) { return "ann", nil }, perUser(10_000, "tokens"))
	b := start(t, setup{policy: p, options: gateway.Options{Callers: callers}, sim: llmsim.Config{Default: llmsim.Model{OutputTokens: 40}}})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.StreamError})
	a := b.stream("hi")
	b.calls.Wait()
	if a.err != nil || !strings.Contains(a.says(t), "hi") {
		t.Fatalf("%v %s", a.err, a.body)
	}
	b.wants(a, proxy.AttemptsHeader, "2")
	log := b.sim.Log()
	last := log[len(log)-1]
	if got := used(t, callers); len(log) != 2 || got != last.Input+last.Output {
		t.Errorf("%d tokens were used of %d and %d in %d calls", got, last.Input, last.Output, len(log))
	}
}

func TestCostsAreToldBeforeOrBehind(t *testing.T) {
	for _, second := range []bool{false, true} {
		b := start(t, setup{policy: quick(), options: gateway.Options{Prices: price.BuiltIn()}})
		client := &http.Client{Transport: &http.Transport{}}
		if second {
			b.weir.Close()
			b.weir = httptest.NewUnstartedServer(b.p)
			b.weir.Config.Protocols = new(http.Protocols)
			b.weir.Config.Protocols.SetUnencryptedHTTP2(true)
			b.weir.Start()
			t.Cleanup(b.weir.Close)
			only := new(http.Protocols)
			only.SetUnencryptedHTTP2(true)
			client.Transport.(*http.Transport).Protocols = only
		}
		t.Cleanup(client.CloseIdleConnections)
		for _, stream := range []bool{false, true} {
			body := fmt.Sprintf(`{"model":"gpt-4o","stream":%v,"messages":[{"role":"user","content":"hi"}]}`, stream)
			r, _ := http.NewRequest(http.MethodPost, b.weir.URL+"/chat"+completions, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer sk-test")
			r.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || second != (resp.ProtoMajor == 2) {
				t.Fatalf("%v %d %s %s", err, resp.StatusCode, resp.Proto, text)
			}
			from := resp.Header
			if stream {
				from = resp.Trailer
			}
			if from.Get(gateway.CostHeader) == "" || resp.Header.Get(gateway.EstimateHeader) == "" {
				t.Errorf("%s, stream %v: header %v, trailer %v", resp.Proto, stream, resp.Header, resp.Trailer)
			}
		}
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKIXPublicKey(&key.PublicKey)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	claims, err := gateway.NewClaims(gateway.ClaimOptions{PublicKey: public, Issuer: "https://issuer.example", Audience: "weir"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	good := func() jwt.MapClaims {
		return jwt.MapClaims{"sub": "ann", "iss": "https://issuer.example", "aud": "weir", "exp": now.Add(time.Hour).Unix()}
	}
	with := func(name string, v any) jwt.MapClaims {
		c := good()
		if c[name] = v; v == nil {
			delete(c, name)
		}
		return c
	}
	for name, c := range map[string]struct {
		method jwt.SigningMethod
		key    any
		claims jwt.MapClaims
		ok     bool
	}{
		"good":               {jwt.SigningMethodRS256, key, good(), true},
		"a clock ahead":      {jwt.SigningMethodRS256, key, with("nbf", now.Add(10*time.Second).Unix()), true},
		"a clock behind":     {jwt.SigningMethodRS256, key, with("exp", now.Add(-10*time.Second).Unix()), true},
		"expired":            {jwt.SigningMethodRS256, key, with("exp", now.Add(-2*time.Minute).Unix()), false},
		"without expiry":     {jwt.SigningMethodRS256, key, with("exp", nil), false},
		"another issuer":     {jwt.SigningMethodRS256, key, with("iss", "https://other.example"), false},
		"another audience":   {jwt.SigningMethodRS256, key, with("aud", "other"), false},
		"unsigned":           {jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good(), false},
		"the key as secret":  {jwt.SigningMethodHS256, public, good(), false},
		"a claim of objects": {jwt.SigningMethodRS256, key, with("sub", []string{"a", "b"}), false},
	} {
		token, err := jwt.NewWithClaims(c.method, c.claims).SignedString(c.key)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		who, err := claims.Key("sub")(r)
		if (err == nil) != c.ok || c.ok && who != "ann" {
			t.Errorf("%s: %q, %v", name, who, err)
		}
		if err != nil && strings.Contains(err.Error(), token[:20]) {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
}

// A refresh continues after the request that started it has ended, with that request's data.
func TestARefreshOutlivesItsRequest(t *testing.T) {
	kept := newCache(t, cache.Options{TTL: time.Nanosecond})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: kept}})
	b.stream("hi")
	b.wants(b.stream("hi"), gateway.CacheHeader, "stale")
	b.calls.Wait()
	late := time.After(20 * time.Second)
	for kept.Stats().Stored < 2 {
		select {
		case <-late:
			t.Fatalf("%+v", kept.Stats())
		case <-time.After(time.Millisecond):
		}
	}
	a := b.stream("hi")
	if strings.Contains(a.body, `"usage":{`) {
		t.Errorf("the renewed answer has the usage that weir asked for: %s", a.body)
	}
	for _, v := range b.sim.Violations() {
		t.Error(v)
	}
}

// No goroutines remain after all calls have ended.
func TestNothingGoesOnAfterwards(t *testing.T) {
	count := runtime.NumGoroutine()
	t.Run("calls", func(t *testing.T) {
		c, all := tiers(t, gateway.Tier{Model: "gpt-4o-mini"}, gateway.Tier{Messages: []string{"We are sorry."}})
		b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all, FirstContent: 30 * time.Millisecond, Hold: 10 * time.Millisecond, Idle: 30 * time.Millisecond}})
		t.Cleanup(http.DefaultClient.CloseIdleConnections)
		for _, f := range []llmsim.Fault{
			{Kind: llmsim.StreamError}, {Kind: llmsim.Cut}, {Kind: llmsim.Cut, Events: 2}, {Kind: llmsim.EmptyBody}, {Kind: llmsim.Hang, Where: llmsim.AfterHeaders},
			{Kind: llmsim.Hang, Where: llmsim.AfterContent}, {Kind: llmsim.Reset}, {Kind: llmsim.Error}, {Kind: llmsim.Throttle}, {Kind: llmsim.BadJSON},
		} {
			b.sim.Fault(f)
			b.stream("hi")
			b.sim.Clear()
			b.chat("hi")
		}
		b.calls.Wait()
	})
	late := time.After(20 * time.Second)
	for runtime.NumGoroutine() > count+3 { // the number of idle connections of other tests varies
		select {
		case <-late:
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), count, stacks[:runtime.Stack(stacks, true)])
		case <-time.After(time.Millisecond):
		}
	}
}

// A compressed request is counted completely.
func TestPackedRequestsAreCounted(t *testing.T) {
	p := quick()
	p.Limits = []limit.Limit{tokenLimit(1, time.Minute, 100_000)}
	b := start(t, setup{policy: p, options: gateway.Options{MaxBody: 1 << 20}})
	pack := func(text string) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return out.String()
	}
	b.sim.Fault(llmsim.Fault{Kind: llmsim.NoUsage})
	a := b.post(completions, pack(`{"model":"gpt-4o","max_tokens":900,"messages":[{"role":"user","content":"hello"}]}`), "Content-Encoding", "gzip")
	if a.StatusCode != 200 || !strings.Contains(a.says(t), "hello") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if got := b.left("chat", "tpm"); got > 100_000-900 {
		t.Errorf("%d tokens are left after a call for 900", got)
	}
	if a := b.post(completions, pack(strings.Repeat(" ", 2<<20)), "Content-Encoding", "gzip"); a.StatusCode != 413 {
		t.Errorf("a bomb: %d %s", a.StatusCode, a.body)
	}
	for _, bad := range []string{"", "no gzip", pack(`{"model":"m"}`)[:12]} {
		if a := b.post(completions, bad, "Content-Encoding", "gzip"); a.StatusCode != 400 || !strings.Contains(a.body, `"error":{`) {
			t.Errorf("%q: %d %s", bad, a.StatusCode, a.body)
		}
	}
}

// A wrong Content-Encoding does not prevent reading, because servers may ignore it.
func TestCodingsHideNothing(t *testing.T) {
	const said = `{"model":"gpt-4o","max_tokens":900,"messages":[{"role":"user","content":"hello"}]}`
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, said)
	_ = w.Close()
	for _, c := range []struct {
		body    string
		codings []string
		status  int
	}{
		{said, []string{"identity"}, 200}, {said, []string{"Identity", " identity , "}, 200}, {said, []string{""}, 200},
		{packed.String(), []string{"GZIP"}, 200}, {packed.String(), []string{"x-gzip"}, 200}, {packed.String(), []string{"identity, gzip"}, 200},
		{said, []string{"x"}, 415}, {said, []string{"utf-8"}, 415}, {said, []string{"br"}, 415}, {said, []string{"aws-chunked"}, 415},
		{said, []string{"gzip", "gzip"}, 415}, {said, []string{"gzip, gzip"}, 415}, {packed.String(), []string{"gzip", "br"}, 415},
	} {
		for _, chunked := range []bool{false, true} {
			p := quick()
			p.Limits = []limit.Limit{tokenLimit(1, time.Minute, 100_000)}
			ledger := price.NewLedger(10)
			up := provider(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`)
			})
			b := start(t, setup{policy: p, options: gateway.Options{Ledger: ledger}, at: up.URL})
			r, _ := http.NewRequest(http.MethodPost, b.weir.URL+"/chat"+completions, strings.NewReader(c.body))
			if chunked {
				r.ContentLength = -1
			}
			r.Header["Content-Encoding"] = c.codings
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			_, bodies := up.requests()
			if resp.StatusCode != c.status || c.status == 415 && (len(bodies) > 0 || !strings.Contains(string(text), `"error":{`) || !strings.Contains(string(text), "gzip")) {
				t.Errorf("%q: %d %s, %d went on", c.codings, resp.StatusCode, text, len(bodies))
			}
			if left := b.left("chat", "tpm"); c.status == 200 && (left > 100_000-900 || len(bodies) != 1 || bodies[0] != said) {
				t.Errorf("%q: %d tokens are left after a call for 900, %q was sent on", c.codings, left, bodies)
			}
			sum := int64(0)
			for who, used := range ledger.All() {
				if sum += used.Output; who.Model != "gpt-4o" {
					t.Errorf("%q: the ledger has %v", c.codings, who)
				}
			}
			if c.status == 200 && sum != 2 {
				t.Errorf("%q: %d tokens of output in the ledger", c.codings, sum)
			}
		}
	}
}
