package reading

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/frame"
)

// A transcript is an answer in testdata, based on the providers' references.
type transcript struct {
	file   string
	want   string // summary of a collecting reader at the end
	before string // the first content; the answer has not committed before it
}

var transcripts = []transcript{
	{"openai_text.sse", `1200+340 read 1024 write 0; complete; stop; plain "Hello, \"wörld\"\n😀"`, `Hello`},
	{"openai_azure.sse", `unsaid; complete; content_filter truncated; plain "Hi"`, `Hi`},
	{"openai_tools.sse", `1200+340 read 1024 write 0; complete; tool_calls; rich`, `{\"usage\"`},
	{"openai_refusal.sse", `unsaid; complete; stop truncated; plain ""`, `I can't`},
	{"openai_error.sse", `unsaid; ; ; plain ""; server_error 500 failed "The server had an error while processing your request. Sorry about that!"`, ``},
	{"openai_limit.sse", `unsaid; complete; ; plain ""; rate_limit_exceeded 429 throttled undone after 4.891s "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 4.891s."`, ``},
	{"openrouter_error.sse", `unsaid; ; error truncated; plain "Once"; 502 502 failed "Provider disconnected"`, `Once`},
	{"openai_compatible.sse", `10+30 read 0 write 0; complete; length truncated; plain thoughts "42"`, `Let me think`},

	{"responses_text.sse", `370+110 read 128 write 0; complete; completed; plain "Hi there!"`, `"delta":"Hi"`},
	{"responses_tools.sse", `370+110 read 128 write 0; complete; completed; rich thoughts`, `"delta":"**Thinking**`},
	{"responses_incomplete.sse", `370+110 read 128 write 0; complete; max_output_tokens truncated; plain "Hi"`, `"delta":"Hi"`},
	{"responses_failed.sse", `unsaid; complete; ; plain ""; rate_limit_exceeded 429 throttled undone after 6m0s "Rate limit reached. Please try again in 6m0s."`, ``},
	{"responses_error.sse", `unsaid; ; ; plain ""; server_error 500 failed "Something went wrong"`, ``},
	{"responses_error_nested.sse", `unsaid; ; ; plain ""; too_many_requests 429 throttled undone "Too Many Requests"`, ``},
	{"responses_refusal.sse", `370+110 read 128 write 0; complete; completed truncated; plain ""`, `"delta":"I cannot`},

	{"anthropic_text.sse", `1325+15 read 1000 write 300; complete; end_turn; plain "Hello!\u2028\"x\""`, `Hello`},
	{"anthropic_thinking.sse", `1325+89 read 1000 write 300; complete; max_tokens truncated; plain thoughts "27 * 453 = 12231"`, `Let me solve`},
	{"anthropic_tools.sse", `1325+89 read 1000 write 300; complete; tool_use; rich`, `{\"usage\"`},
	{"anthropic_overloaded.sse", `1325+1 read 1000 write 300; ; ; plain ""; overloaded_error 529 failed "Overloaded"`, ``},
	{"anthropic_late_error.sse", `1325+1 read 1000 write 300; ; ; plain "Hel"; rate_limit_error 429 throttled "slow down"`, `Hel`},
	{"anthropic_refusal.sse", `1325+2 read 1000 write 300; complete; refusal truncated; plain "No"`, `"No"`},
	{"anthropic_gateway.sse", `9+3 read 0 write 0; complete; end_turn; plain "Hi"`, `Hi`},
	{"anthropic_cut.sse", `1325+1 read 1000 write 300; ; ; plain "Hello"`, `Hello`},

	{"gemini_text.sse", `500+149 read 200 write 0; complete; STOP; plain thoughts "Hello"`, `**Plan**`},
	{"gemini_text.array", `500+149 read 200 write 0; complete; STOP; plain thoughts "Hello"`, `**Plan**`},
	{"gemini_tools.sse", `540+20 read 200 write 0; complete; STOP; rich`, `get_weather`},
	{"gemini_blocked.sse", `12+0 read 0 write 0; complete; PROHIBITED_CONTENT truncated; plain ""`, ``},
	{"gemini_safety.sse", `500+0 read 200 write 0; complete; SAFETY truncated; plain "Hm"`, `Hm`},
	{"gemini_day.sse", `unsaid; ; ; plain ""; RESOURCE_EXHAUSTED 429 throttled undone quota "You exceeded your current quota."`, ``},
	{"gemini_day.array", `unsaid; ; ; plain ""; RESOURCE_EXHAUSTED 429 throttled undone quota "You exceeded your current quota."`, ``},
	{"gemini_unavailable.sse", `unsaid; ; ; plain "Hel"; UNAVAILABLE 503 failed "The model is overloaded. Please try again later."`, `Hel`},

	{"converse_text.msgs", `1441+165 read 1400 write 37; complete; end_turn; plain "Hi there"`, `Hi`},
	{"converse_tools.msgs", `1441+165 read 1400 write 37; complete; tool_use; rich thoughts`, `Hmm`},
	{"converse_throttled.msgs", `unsaid; ; ; plain ""; throttlingException 429 throttled undone "Too many tokens, please wait before trying again."`, ``},
	{"converse_day.msgs", `unsaid; ; ; plain ""; throttlingException 429 throttled undone quota "Too many tokens per day, please wait before trying again."`, ``},
	{"converse_late.msgs", `unsaid; ; ; plain "Hi"; modelStreamErrorException 424 failed "The model broke"`, `Hi`},
	{"converse_error.msgs", `unsaid; ; ; plain ""; InternalServerError 500 failed "it broke"`, ``},
	{"converse_guardrail.msgs", `1441+165 read 1400 write 37; complete; guardrail_intervened truncated; plain "Sorry"`, `Sorry`},
	{"invoke_anthropic.msgs", `1325+16 read 1000 write 300; complete; end_turn; plain "Hello from Bedrock"`, `SGVsbG8`},
	{"invoke_llama.msgs", `9+3 read 0 write 0; complete; stop; plain "Hi"`, ``},
	{"invoke_titan.msgs", `9+128 read 0 write 0; complete; LENGTH truncated; plain "Hi!"`, ``},
	{"invoke_nova.msgs", `9+3 read 0 write 0; complete; end_turn; plain "Hi"`, ``},
	{"invoke_throttled.msgs", `1325+1 read 1000 write 300; ; ; plain ""; throttlingException 429 throttled undone "Too many requests"`, ``},

	{"openai.json", `1200+340 read 1024 write 0; complete; stop; plain "Hello \"wörld\"\n😀"`, ``},
	{"openai_tools.json", `1200+340 read 1024 write 0; complete; tool_calls; rich`, ``},
	{"openai_error.json", `unsaid; complete; ; plain ""; server_error 500 failed "upstream hiccup"`, ``},
	{"openai_embeddings.json", `8+0 read 0 write 0; complete; ; plain ""`, ``},
	{"responses.json", `370+110 read 128 write 0; complete; completed; plain thoughts "Hi there!"`, ``},
	{"responses_failed.json", `unsaid; complete; ; plain ""; server_error 500 failed "The model failed."`, ``},
	{"anthropic.json", `1325+1 read 1000 write 300; complete; end_turn; plain thoughts "Hello"`, ``},
	{"anthropic_tools.json", `1325+1 read 1000 write 300; complete; tool_use; rich`, ``},
	{"anthropic_count.json", `unsaid; complete; ; plain ""`, ``},
	{"gemini.json", `500+149 read 200 write 0; complete; STOP; plain thoughts "Hello"`, ``},
	{"gemini_long.json", `500+30 read 200 write 0; complete; MAX_TOKENS truncated; plain "Hello"`, ``},
	{"converse.json", `1441+165 read 1400 write 37; complete; end_turn; plain "Hello"`, ``},
	{"invoke_titan.json", `5+7 read 0 write 0; complete; FINISH; plain "Hello"`, ``},
	{"invoke_embed.json", `unsaid; complete; ; plain ""`, ``},
}

func summary(r *Reader) string {
	var b strings.Builder
	if u := r.Usage(); u.Said {
		fmt.Fprintf(&b, "%d+%d read %d write %d", u.Input, u.Output, u.CacheRead, u.CacheWrite)
	} else {
		b.WriteString("unsaid")
	}
	fmt.Fprintf(&b, "; %s; %s%s; ", when(r.Complete(), "complete"), r.Finish(), when(r.Truncated(), " truncated"))
	switch text := r.Text(); {
	case !text.Plain:
		fmt.Fprintf(&b, "rich%s", when(text.Thoughts, " thoughts"))
	default:
		fmt.Fprintf(&b, "plain%s %q", when(text.Thoughts, " thoughts"), text.Text)
	}
	if p := r.Failed(); p != nil {
		fmt.Fprintf(&b, "; %s %d %v%s%s", p.Code, p.Status, p.Outcome.Class, when(p.Outcome.Undone, " undone"), when(p.Outcome.Hint.Quota, " quota"))
		if p.Outcome.Hint.Said {
			fmt.Fprintf(&b, " after %v", p.Outcome.Hint.After)
		}
		fmt.Fprintf(&b, " %q", p.Message)
	}
	return b.String()
}

func when(b bool, s string) string {
	if b {
		return s
	}
	return ""
}

func (tr transcript) reader() *Reader {
	family := map[string]llm.Family{
		"openai": llm.OpenAI, "openrouter": llm.OpenAI, "responses": llm.Responses, "anthropic": llm.Anthropic,
		"gemini": llm.Gemini, "converse": llm.Converse, "invoke": llm.Invoke,
	}
	types := map[string]string{
		".sse": "text/event-stream; charset=utf-8", ".array": "application/json; charset=UTF-8",
		".json": "application/json", ".msgs": "application/vnd.amazon.eventstream",
	}
	name, _, _ := strings.Cut(strings.TrimSuffix(tr.file, filepath.Ext(tr.file)), "_")
	ext := filepath.Ext(tr.file)
	r := New(llm.Route{Family: family[name], Stream: ext == ".array"}, ext != ".json", 200, http.Header{"Content-Type": {types[ext]}})
	r.Collect()
	return r
}

func (tr transcript) body(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", tr.file))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(tr.file) != ".msgs" {
		return b
	}
	var out bytes.Buffer
	for line := range bytes.Lines(b) {
		if err := writeMessage(&out, line); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// writeMessage writes the AWS message described by a line of testdata.
func writeMessage(w *bytes.Buffer, line []byte) error {
	var m struct {
		Event, Exception, Error, Text string
		Payload, Chunk                json.RawMessage
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	switch {
	case m.Chunk != nil:
		p, _ := json.Marshal(map[string]any{"bytes": []byte(m.Chunk), "p": "abcdef"})
		return frame.WriteEvent(w, "chunk", p)
	case m.Event != "":
		return frame.WriteEvent(w, m.Event, m.Payload)
	case m.Exception != "":
		return frame.WriteException(w, m.Exception, m.Payload)
	}
	var h eventstream.Headers
	h.Set(":message-type", eventstream.StringValue("error"))
	h.Set(":error-code", eventstream.StringValue(m.Error))
	h.Set(":error-message", eventstream.StringValue(m.Text))
	return eventstream.NewEncoder().Encode(w, eventstream.Message{Headers: h})
}

// feed passes the chunks through a reader and checks that no byte is lost. It overwrites each chunk after use.
func feed(t testing.TB, r *Reader, chunks [][]byte) {
	t.Helper()
	var fed, passed []byte
	for _, c := range chunks {
		p := bytes.Clone(c)
		fed = append(fed, p...)
		passed = append(passed, r.Feed(p)...)
		clear(p)
	}
	last := r.End()
	if got, ended := string(passed)+string(last)+string(r.Tail()), string(fed); got != ended && got != ended+"\n\n" {
		t.Fatalf("passed on %q, want %q", got, ended)
	}
}

func TestTranscripts(t *testing.T) {
	for _, tr := range transcripts {
		body := tr.body(t)
		for name, chunks := range map[string][][]byte{"whole": {body}, "bytewise": bytewise(string(body))} {
			r := tr.reader()
			feed(t, r, chunks)
			if got := summary(r); got != tr.want {
				t.Errorf("%s, %s:\n got %s\nwant %s", tr.file, name, got, tr.want)
			}
		}
	}
}

func TestTranscriptsInAnyChunks(t *testing.T) {
	for i, tr := range transcripts {
		body := tr.body(t)
		for seed := range uint64(25) {
			r := tr.reader()
			feed(t, r, chunked(rand.New(rand.NewPCG(seed, uint64(i))), body))
			if got := summary(r); got != tr.want {
				t.Fatalf("%s, seed %d:\n got %s\nwant %s", tr.file, seed, got, tr.want)
			}
		}
	}
}

func TestEveryTranscriptIsTested(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	tested := make(map[string]bool)
	for _, tr := range transcripts {
		tested[tr.file] = true
	}
	for _, f := range files {
		if !tested[f.Name()] && !f.IsDir() {
			t.Errorf("%s: is not tested", f.Name())
		}
	}
}

// The first content commits the answer, and nothing before it does.
func TestFirstContentCommits(t *testing.T) {
	for _, tr := range transcripts {
		if filepath.Ext(tr.file) == ".json" {
			continue
		}
		r := tr.reader()
		var passed []byte
		for _, b := range bytewise(string(tr.body(t))) {
			whole := r.Feed(b)
			passed = append(passed, whole...)
			has := tr.before != "" && bytes.Contains(passed, []byte(tr.before))
			if strings.HasPrefix(tr.file, "invoke_") && tr.before == "" || tr.file == "invoke_anthropic.msgs" {
				continue // base64 hides the start of the content
			}
			if r.Committed() != has {
				t.Fatalf("%s: committed is %v after %q", tr.file, r.Committed(), passed)
			}
		}
	}
}

// A transcript that is cut before its last event is not complete.
func TestCutStreamsAreNotComplete(t *testing.T) {
	for _, tr := range transcripts {
		if !strings.Contains(tr.want, "; complete;") {
			continue
		}
		body := tr.body(t)
		end := firstComplete(tr, body)
		for n := 0; n < end; n += 1 + end/150 {
			r := tr.reader()
			r.Feed(body[:n])
			if r.Complete() {
				t.Fatalf("%s: complete after %d of %d bytes", tr.file, n, len(body))
			}
		}
		const most = len("data: [DONE]\n\n") // follows OpenAI's usage; or the bracket of an array
		if left := len(body) - end; left > most {
			t.Errorf("%s: complete %d bytes before its end", tr.file, left)
		}
	}
}

func firstComplete(tr transcript, body []byte) int {
	r := tr.reader()
	for i := range body {
		if r.Feed(body[i : i+1]); r.Complete() {
			return i + 1
		}
	}
	return len(body)
}
