package llmsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// Faults instead of a response take no units, and end after their number of times.
func TestErrorsLookAsTheProvidersDo(t *testing.T) {
	for _, x := range []struct {
		fault  Fault
		family llm.Family
		status int
		body   string
		header string // "name: value"
	}{
		{Fault{Kind: Throttle, Hint: 1500 * time.Millisecond}, llm.OpenAI, 429, `"code": "rate_limit_exceeded"`, "Retry-After-Ms: 1500"},
		{Fault{Kind: Throttle, Hint: 1500 * time.Millisecond}, llm.OpenAI, 429, `try again in 1.5s.`, "X-Ratelimit-Reset-Requests: 1.5s"},
		{Fault{Kind: Throttle, NoHint: true, Tokens: true}, llm.OpenAI, 429, `"type": "tokens"`, "Retry-After: "},
		{Fault{Kind: Broke}, llm.Responses, 429, `"code": "insufficient_quota"`, ""},
		{Fault{Kind: Error}, llm.OpenAI, 500, `"type": "server_error"`, ""},
		{Fault{Kind: Error, Status: 529}, llm.OpenAI, 503, `"type": "server_error"`, ""},
		{Fault{Kind: Throttle, Hint: 1500 * time.Millisecond}, llm.Anthropic, 429, `"type":"rate_limit_error"`, "Retry-After: 2"},
		{Fault{Kind: Throttle, NoHint: true}, llm.Anthropic, 429, `"type":"rate_limit_error"`, "Retry-After: "},
		{Fault{Kind: Throttle}, llm.Anthropic, 429, `"request_id"`, "Anthropic-Ratelimit-Requests-Remaining: 0"},
		{Fault{Kind: Error, Status: 529}, llm.Anthropic, 529, `"type":"overloaded_error"`, ""},
		{Fault{Kind: Broke}, llm.Anthropic, 400, `credit balance`, ""},
		{Fault{Kind: Throttle, Hint: 36429 * time.Millisecond}, llm.Gemini, 429, `"retryDelay": "36.429s"`, "Retry-After: "},
		{Fault{Kind: Throttle, NoHint: true}, llm.Gemini, 429, "check quota", "Retry-After: "},
		{Fault{Kind: Throttle, Day: true, Hint: 20 * time.Hour}, llm.Gemini, 429, "PerDay", ""},
		{Fault{Kind: Error, Status: 503}, llm.Gemini, 503, `"UNAVAILABLE"`, ""},
		{Fault{Kind: Throttle}, llm.Converse, 429, "Too many requests, ", "X-Amzn-Errortype: ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/"},
		{Fault{Kind: Throttle, Tokens: true, Day: true}, llm.Invoke, 429, "Too many tokens per day, ", ""},
		{Fault{Kind: Error, Status: 503}, llm.Converse, 503, "", "X-Amzn-Errortype: ServiceUnavailableException:http://internal.amazon.com/coral/com.amazon.bedrock/"},
		{Fault{Kind: Redirect, Location: "/elsewhere"}, llm.OpenAI, 307, "", "Location: /elsewhere"},
	} {
		for _, stream := range []bool{false, true} {
			p, s := start(t, Config{})
			x.fault.Times = 2
			p.Fault(x.fault)
			client := s.client()
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			var statuses []int
			for i := range 3 {
				res, body, err := send(t, client, s.URL, asks(x.family, stream))
				if err != nil {
					t.Fatal(err)
				}
				statuses = append(statuses, res.StatusCode)
				if i == 2 {
					continue
				}
				name, value, _ := strings.Cut(x.header, ": ")
				if res.Header.Get(name) != value || !strings.Contains(string(body), x.body) || res.StatusCode != x.status {
					t.Errorf("%s, %+v: %d %v\n%s", x.family, x.fault, res.StatusCode, res.Header, body)
				}
			}
			if want := []int{x.status, x.status, 200}; fmt.Sprint(statuses) != fmt.Sprint(want) {
				t.Errorf("%s, %+v: %v, want %v", x.family, x.fault, statuses, want)
			}
			if got := p.Count(func(a Attempt) bool { return a.Granted }); got != 1 {
				t.Errorf("%s, %+v: %d granted, want 1", x.family, x.fault, got)
			}
		}
	}
}

// The effects of failed connections, at each place.
func TestConnectionsFail(t *testing.T) {
	for _, kind := range []Kind{Reset, Drop} {
		for _, where := range []Where{BeforeHeaders, AfterHeaders, AfterContent} {
			p, s := start(t, Config{})
			p.Fault(Fault{Kind: kind, Where: where, Events: 2})
			_, body, err := send(t, s.client(), s.URL, asks(llm.OpenAI, true))
			if err == nil || kind == Reset && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s %s: error %v", kind, where, err)
			}
			_, data := sse(t, body)
			if where == AfterContent && kind == Drop && len(data) != 3 { // the role and two pieces
				t.Errorf("%s %s: %q", kind, where, data)
			}
			if a := p.Log()[0]; a.Outcome != Failed || a.Fault != kind {
				t.Errorf("%s %s: %+v", kind, where, a)
			}
		}
	}
}

// A truncated stream ends well in HTTP. A stream with an error contains the error at its place.
func TestStreamsBreak(t *testing.T) {
	ends := map[llm.Family]string{llm.OpenAI: "[DONE]", llm.Responses: "response.completed", llm.Anthropic: "message_stop", llm.Gemini: "finishReason", llm.Converse: "metadata", llm.Invoke: `invocationMetrics`}
	fails := map[llm.Family]string{llm.OpenAI: `data: {"error":{`, llm.Responses: "response.failed", llm.Anthropic: "event: error\n", llm.Gemini: `data: {"error":{"code":503`, llm.Converse: "serviceUnavailableException", llm.Invoke: ":exception-type"}
	for _, family := range families {
		for _, kind := range []Kind{Cut, StreamError, BadJSON} {
			p, s := start(t, Config{Default: Model{OutputTokens: 20}})
			p.Fault(Fault{Kind: kind, Events: 2})
			res, body, err := send(t, s.client(), s.URL, asks(family, true))
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%s %s: %v", family, kind, err)
			}
			got := string(body)
			if strings.Contains(got, ends[family]) || strings.Contains(got, fails[family]) != (kind == StreamError) {
				t.Errorf("%s %s: %s", family, kind, got)
			}
			if a := p.Log()[0]; a.Output != 2 || a.Outcome != Failed {
				t.Errorf("%s %s: %+v, want 2 tokens of output", family, kind, a)
			}
			if _, _, err := send(t, s.client(), s.URL, asks(family, true)); err != nil {
				t.Errorf("%s %s: afterwards: %v", family, kind, err)
			}
		}
	}
}

func TestAnErrorBeforeContent(t *testing.T) {
	p, s := start(t, Config{})
	for family, want := range map[llm.Family]string{llm.Responses: `"type":"error"`, llm.Anthropic: "rate_limit_error", llm.Converse: "throttlingException"} {
		p.Fault(Fault{Kind: StreamError, Status: 429})
		_, body, err := send(t, s.client(), s.URL, asks(family, true))
		if err != nil || !strings.Contains(string(body), want) || strings.Contains(string(body), "elta") {
			t.Errorf("%s: %v %s", family, err, body)
		}
	}
}

func TestUsageIsMissingOrWrong(t *testing.T) {
	for _, family := range families {
		for _, stream := range []bool{false, true} {
			for want, f := range map[string]Fault{
				"<nil> <nil>":         {Kind: NoUsage},
				"12 12":               {Kind: WrongUsage, Factor: 2},
				"-1 9007199254740992": {Kind: WrongUsage},
			} {
				p, s := start(t, Config{})
				p.Fault(f)
				_, body, err := send(t, s.client(), s.URL, asks(family, stream))
				_, in, out, ended := said(t, family, stream, body)
				got := strings.ReplaceAll(fmt.Sprint(in, out), "9.007199254740992e+15", "9007199254740992")
				if err != nil || got != want {
					t.Errorf("%s, stream %v, %+v: %v, %s, want %s", family, stream, f, err, got, want)
				}
				if !ended && family != llm.Converse && (family != llm.Responses || stream) {
					t.Errorf("%s, stream %v, %+v: it did not end well", family, stream, f)
				}
				if a := p.Log()[0]; a.Input != 6 || a.Output != 6 {
					t.Errorf("%s: the record says %+v, want what was used", family, a)
				}
			}
		}
	}
}

func TestBodiesThatAreNone(t *testing.T) {
	p, s := start(t, Config{})
	for _, x := range []struct {
		kind   Kind
		stream bool
		ok     func(string) bool
	}{
		{EmptyBody, false, func(s string) bool { return s == "" }},
		{EmptyBody, true, func(s string) bool { return s == "" }},
		{BadJSON, false, func(s string) bool { return strings.HasPrefix(s, "{") && !strings.HasSuffix(s, "}\n") }},
	} {
		p.Fault(Fault{Kind: x.kind})
		res, body, err := send(t, s.client(), s.URL, asks(llm.OpenAI, x.stream))
		if err != nil || res.StatusCode != 200 || !x.ok(string(body)) {
			t.Errorf("%s, stream %v: %v %q", x.kind, x.stream, err, body)
		}
	}
}

// A disconnect is noticed immediately, at any point of the response.
func TestCallersLeave(t *testing.T) {
	for name, x := range map[string]struct {
		fault  Fault
		stream bool
		output int64
	}{
		"before the header":        {Fault{Kind: Hang}, false, 0},
		"after the header":         {Fault{Kind: Hang, Where: AfterHeaders}, true, 0},
		"after two pieces":         {Fault{Kind: Hang, Where: AfterContent, Events: 2}, true, 2},
		"while it waits":           {Fault{Kind: Slow, Delay: time.Hour}, true, 0},
		"of a stream without end":  {Fault{Kind: NeverEnding}, true, 1001},
		"while a plain one writes": {Fault{Kind: Slow, Delay: time.Hour}, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := New(Config{})
			client := inMemory(t, p)
			p.Fault(x.fault)
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Second+time.Millisecond, leave)
			res, err := client.Do(asks(llm.Anthropic, x.stream).request(ctx, "http://sim"))
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			a := p.Log()[0]
			if a.Outcome != Left || !a.Left || a.End != 10*time.Second+time.Millisecond || a.Output != x.output || p.Open() != 0 {
				t.Errorf("%s: %+v, %d open", name, a, p.Open())
			}
		})
	}
}

// Delays are as configured, with pings in families that support pings.
func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Default: Model{OutputTokens: 11, FirstToken: 25 * time.Second, Between: 100 * time.Millisecond}})
		client := inMemory(t, p)
		for _, stream := range []bool{false, true} {
			begin := time.Now()
			_, body, err := send(t, client, "http://sim", asks(llm.Anthropic, stream))
			if took := time.Since(begin); err != nil || took != 26*time.Second {
				t.Errorf("stream %v: %v, took %v, want 26s", stream, err, took)
			}
			if n := strings.Count(string(body), "event: ping"); stream && n != 3 {
				t.Errorf("%d pings, want 3", n)
			}
		}
		synctest.Wait()
		if a := p.Log()[1]; a.First-a.At != 25*time.Second {
			t.Errorf("first piece after %v, want 25s", a.First-a.At)
		}
	})
}

func TestFaultsFitTheirCallsAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Keys: map[string]Key{"k": {Name: "a"}, "q": {Name: "b"}}})
		client := inMemory(t, p)
		p.Fault(Fault{Kind: Error, Family: llm.Anthropic})
		p.Fault(Fault{Kind: Error, Model: "other"})
		p.Fault(Fault{Kind: Error, Key: "b"})
		p.Fault(Fault{Kind: Error, Status: 502, For: time.Minute})
		status := func() int {
			res, _, err := send(t, client, "http://sim", asks(llm.OpenAI, false))
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode
		}
		var got []int
		for range 3 {
			got = append(got, status())
			time.Sleep(30 * time.Second)
		}
		if fmt.Sprint(got) != "[502 502 200]" {
			t.Errorf("got %v, want 502 for a minute", got)
		}
		if n := len(p.State().Faults); n != 3 {
			t.Errorf("%d faults in force, want 3", n)
		}
		p.Fault(Fault{Kind: Error, Times: -1})
		for range 5 {
			if got := status(); got != 500 {
				t.Errorf("got %d, want 500 until it is cleared", got)
			}
		}
		p.Clear()
		if got := status(); got != 200 {
			t.Errorf("got %d", got)
		}
	})
}

func TestDownAndUpAgain(t *testing.T) {
	for _, version := range []int{1, 2} {
		p, s := start(t, Config{})
		client := s.client()
		if version == 2 {
			var only http.Protocols
			only.SetUnencryptedHTTP2(true)
			client = &http.Client{Transport: &http.Transport{Protocols: &only}}
		}
		p.Fault(Fault{Kind: Hang, Where: AfterHeaders})
		hung := make(chan error)
		go func() { _, _, err := send(t, client, s.URL, asks(llm.OpenAI, true)); hung <- err }()
		for p.Open() == 0 { // until the stream has begun
			runtime.Gosched()
		}
		p.Fault(Fault{Kind: Down, For: time.Hour})
		if err := <-hung; err == nil {
			t.Errorf("HTTP/%d: a stream outlives its server", version)
		}
		if _, _, err := send(t, client, s.URL, asks(llm.OpenAI, false)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("HTTP/%d: down: %v", version, err)
		}
		p.Clear()
		if res, _, err := send(t, client, s.URL, asks(llm.OpenAI, false)); err != nil || res.StatusCode != 200 {
			t.Errorf("HTTP/%d: up again: %v", version, err)
		}
		p.Fault(Fault{Kind: Down, For: time.Millisecond})
		for {
			if _, _, err := send(t, client, s.URL, asks(llm.OpenAI, false)); err == nil {
				break
			}
		}
		client.CloseIdleConnections()
	}
}

func TestFaultsThatAreNone(t *testing.T) {
	for _, f := range []Fault{{Kind: "boom"}, {}, {Kind: Down}, {Kind: Hang, Where: "somewhere"}, {Kind: Error, Status: 99}} {
		if f.check() == nil {
			t.Errorf("%+v is taken", f)
		}
	}
}
