package llm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// chatBody returns a chat request of about n bytes in a dozen messages, with the line breaks, quotes and non-ASCII
// characters of real prompts.
func chatBody(n int) []byte {
	line := `She said \"so it is\" – and that was it.\nfor i := range n {\n\treturn a[i] + 42\n} // 日本語 `
	var b strings.Builder
	b.WriteString(`{"model":"gpt-5-mini","temperature":0.2,"max_completion_tokens":800,"messages":[{"role":"system","content":"Answer in one sentence."}`)
	for i := range 12 {
		fmt.Fprintf(&b, `,{"role":"%s","content":"%s"}`, []string{"user", "assistant"}[i%2], strings.Repeat(line, max(1, n/12/len(line))))
	}
	b.WriteString(`],"tools":[{"type":"function","function":{"name":"find","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}}],"user":"u-1","stream":true}`)
	return []byte(b.String())
}

func BenchmarkRecognize(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Recognize(http.MethodPost, "/model/anthropic.claude-v1%3A0/converse", "")
	}
}

func BenchmarkParse(b *testing.B) { benchmark(b, func(*Request) {}) }

func BenchmarkParseAndKey(b *testing.B) { benchmark(b, func(r *Request) { r.Key() }) }

func BenchmarkParseAndPrompt(b *testing.B) { benchmark(b, func(r *Request) { r.Prompt() }) }

func BenchmarkParseAndAnswer(b *testing.B) {
	a := Answer{Text: strings.Repeat("An answer of some length. ", 20), ID: "x"}
	benchmark(b, func(r *Request) { r.Answer(a) })
}

func benchmark(b *testing.B, then func(*Request)) {
	for _, size := range []int{500, 4096, 65536} {
		body := chatBody(size)
		r, _ := Recognize(http.MethodPost, "/v1/chat/completions", "")
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				q, err := r.Parse(body)
				if err != nil {
					b.Fatal(err)
				}
				then(q)
			}
		})
	}
}
