package gateway_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// A flushing encodes what is written.
type flushing interface {
	io.WriteCloser
	Flush() error
}

func encoder(t *testing.T, coding string, to io.Writer) flushing {
	switch coding {
	case "gzip":
		return gzip.NewWriter(to)
	case "deflate":
		return zlib.NewWriter(to)
	case "br":
		return brotli.NewWriter(to)
	}
	z, err := zstd.NewWriter(to)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func encoded(t *testing.T, coding, body string) []byte {
	t.Helper()
	if coding == "" {
		return []byte(body)
	}
	var b bytes.Buffer
	w := encoder(t, coding, &b)
	_, _ = io.WriteString(w, body)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// accepting sends a request with this Accept-Encoding, or without if it is empty, and does not decode the answer.
func (b *bench) accepting(encodings, path, body string) answer {
	b.Helper()
	r, err := http.NewRequest(http.MethodPost, b.weir.URL+"/chat"+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if encodings != "" {
		r.Header.Set("Accept-Encoding", encodings)
	}
	c := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp, err := c.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp, string(text), err}
}

// accepted returns values of Accept-Encoding to try with a coding. "" sends none, and the Python SDKs accept gzip and deflate.
func accepted(coding string) []string {
	if coding == "gzip" {
		return []string{"", "gzip, deflate", "gzip, deflate, br, zstd"}
	}
	return []string{coding}
}

// An answer that the provider encodes, although it was asked not to, arrives decoded, and its usage counts.
func TestEncodedAnswerIsReadLikePlain(t *testing.T) {
	sim := llmsim.New(llmsim.Config{})
	at, err := sim.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	whole := strings.NewReplacer(`"stream":true,`, "", `"stream_options":{"include_usage":true},`, "", "streamGenerateContent?alt=sse", "generateContent",
		"-stream", "", "-with-response-stream", "")
	done := make(map[string]bool)
	for _, way := range tongues {
		if way.model == "amazon.titan-text-express-v1" { // the simulator does not have it
			continue
		}
		for _, ask := range [][2]string{{way.path, way.body}, {whole.Replace(way.path), whole.Replace(way.body)}} {
			if done[ask[0]+ask[1]] {
				continue
			}
			done[ask[0]+ask[1]] = true
			t.Run(ask[0]+" "+ask[1], func(t *testing.T) {
				r, _ := http.NewRequest(http.MethodPost, at.URL+ask[0], strings.NewReader(ask[1]))
				r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer sk-test"}, "X-Api-Key": {"sk-test"}, "X-Goog-Api-Key": {"sk-test"},
					"Anthropic-Version": {"2023-06-01"}}
				resp, err := http.DefaultClient.Do(r)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				var coding string
				p := provider(t, func(w http.ResponseWriter, r *http.Request) {
					if a := r.Header["Accept-Encoding"]; len(a) != 1 || a[0] != "identity" {
						t.Errorf("the provider is asked for %q", a)
					}
					w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
					if coding != "" {
						w.Header().Set("Content-Encoding", coding)
					}
					_, _ = w.Write(encoded(t, coding, string(text)))
				})
				var used atomic.Pointer[gateway.Used]
				var ended atomic.Pointer[weir.Ended]
				b := start(t, setup{policy: quick(), at: p.URL, options: gateway.Options{Family: way.family, Events: gateway.Events{Used: func(u gateway.Used) { used.Store(&u) }}},
					weir: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { ended.Store(&e) }}}})
				var want string
				for _, coding = range []string{"", "gzip", "deflate", "br", "zstd"} {
					for _, accept := range accepted(coding) {
						a := b.accepting(accept, ask[0], ask[1])
						b.calls.Wait()
						u, e := used.Load(), ended.Load()
						if u == nil || e == nil {
							t.Fatalf("%s: %d %s: usage %v, end %v", coding, a.StatusCode, a.body, u, e)
						}
						got := fmt.Sprint(a.StatusCode, a.err, a.Header["Content-Encoding"], e.Outcome, u.Usage, "\n", a.body)
						if want == "" {
							if want = got; !u.Usage.Said {
								t.Fatalf("no usage: %s", got)
							}
						}
						if got != want {
							t.Errorf("%q, accepted %q:\n%s\nwant\n%s", coding, accept, got, want)
						}
					}
				}
			})
		}
	}
}

// An error or a missing end in an encoded answer fails the attempt, and the caller sees it.
func TestFailureInEncodedAnswerCounts(t *testing.T) {
	const (
		word   = `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}` + "\n\n"
		failed = `data: {"error":{"type":"InternalServerError","code":500}}` + "\n\n"
		whole  = word + `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
		events = "text/event-stream"
		text   = "application/json"
		answer = `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`
	)
	for _, tt := range []struct {
		name, kind, body string
		status, cut      int
		code             string // of the attempt
	}{
		{"error event", events, word + failed, 200, 0, "InternalServerError"},
		{"error event at the start", events, failed, 200, 0, "InternalServerError"},
		{"no end", events, word, 200, 0, "cut"},
		{"cut", events, whole, 200, 20, ""},
		{"error in JSON", text, `{"error":{"type":"server_error","message":"no"}}`, 200, 0, "server_error"},
		{"cut JSON", text, answer, 200, 20, ""},
		{"status", text, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`, 429, 0, "insufficient_quota"},
	} {
		for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
			for _, accept := range accepted(coding) {
				t.Run(fmt.Sprint(tt.name, " ", coding, " ", accept), func(t *testing.T) {
					body := encoded(t, coding, tt.body)
					body = body[:len(body)-tt.cut]
					p := provider(t, func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("Content-Type", tt.kind)
						w.Header().Set("Content-Encoding", coding)
						w.WriteHeader(tt.status)
						_, _ = w.Write(body)
					})
					ask := `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`
					if tt.kind == events {
						ask = streamed
					}
					for _, below := range []bool{false, true} {
						var ended atomic.Pointer[weir.Ended]
						s := setup{policy: quick(), at: p.URL, weir: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { ended.Store(&e) }}}}
						if below {
							s.options.Cascade, s.options.Tiers = tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
						}
						b := start(t, s)
						a := b.accepting(accept, completions, ask)
						b.calls.Wait()
						e := ended.Load()
						if e == nil || e.Outcome.Class == 0 || e.Outcome.Class.String() == "ok" || tt.code != "" && e.Outcome.Code != tt.code {
							t.Errorf("the attempt ended as %+v, want %q", e, tt.code)
						}
						begun := strings.Contains(a.body, "word")
						switch {
						case below && !begun:
							if got := a.says(t); got != "We are sorry." {
								t.Errorf("the next tier says %q", got)
							}
						case tt.status != 200: // unchanged
							if a.body != string(body) || a.Header.Get("Content-Encoding") != coding {
								t.Errorf("%d %v %q, want the provider's", a.StatusCode, a.Header, a.body)
							}
						case begun && !strings.Contains(a.body, `"error":{`):
							t.Errorf("the caller sees no error: %v %s", a.err, a.body)
						case !begun && a.StatusCode < 500 && a.err == nil && !strings.Contains(a.body, `"error":{`):
							t.Errorf("the caller sees no failure: %d %s", a.StatusCode, a.body)
						}
					}
				})
			}
		}
	}
}

// Each event of an encoded stream arrives when the provider has sent it.
func TestEncodedStreamArrivesEventByEvent(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		t.Run(coding, func(t *testing.T) {
			read := make(chan struct{})
			p := provider(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", coding)
				z := encoder(t, coding, w)
				for i := range 3 {
					fmt.Fprintf(z, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word %d\"}}]}\n\n", i)
					_ = z.Flush()
					_ = http.NewResponseController(w).Flush()
					select {
					case <-read:
					case <-r.Context().Done():
						return
					}
				}
				_, _ = io.WriteString(z, "data: [DONE]\n\n")
				_ = z.Close()
			})
			b := start(t, setup{policy: quick(), at: p.URL})
			at, _ := url.Parse(b.weir.URL + "/chat" + completions)
			late, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			ask := &http.Request{Method: http.MethodPost, URL: at, Body: io.NopCloser(strings.NewReader(streamed)),
				Header: http.Header{"Accept-Encoding": {coding}, "Content-Type": {"application/json"}}}
			resp, err := http.DefaultClient.Do(ask.WithContext(late))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, buffer := "", make([]byte, 4096)
			for i := range 3 {
				for !strings.Contains(got, fmt.Sprint("word ", i)) {
					n, err := resp.Body.Read(buffer)
					if got += string(buffer[:n]); err != nil {
						t.Fatalf("%q, then %v", got, err)
					}
				}
				read <- struct{}{}
			}
			if rest, err := io.ReadAll(resp.Body); err != nil || string(rest[max(0, len(rest)-14):]) != "data: [DONE]\n\n" {
				t.Errorf("the end is %q, %v", rest, err)
			}
		})
	}
}
