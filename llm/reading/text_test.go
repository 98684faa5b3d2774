package reading

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/llm"
)

var plainJSON = http.Header{"Content-Type": {"application/json"}}

// A part of a text is never reported as the entire text.
func TestTooMuchTextIsNotPlain(t *testing.T) {
	for _, c := range []struct {
		family      llm.Family
		begin, stop string
	}{
		{llm.OpenAI, `{"choices":[{"index":0,"message":{"content":"`, `"},"finish_reason":"stop"}]}`},
		{llm.Gemini, `{"candidates":[{"content":{"parts":[{"text":"`, `"}]},"finishReason":"STOP"}]}`},
	} {
		for _, more := range []int{0, 1, 1000} {
			for _, chunk := range []int{64 << 10, 8 << 20} {
				r := New(llm.Route{Family: c.family}, false, 200, plainJSON)
				r.Collect()
				body := []byte(c.begin + strings.Repeat("x", maxText+more) + c.stop)
				for len(body) > 0 {
					n := min(chunk, len(body))
					r.Feed(body[:n])
					body = body[n:]
				}
				got := r.Text()
				if !r.Complete() || got.Plain != (more == 0) || got.Plain && len(got.Text) != maxText {
					t.Errorf("family %v, %d bytes more than fit, in chunks of %d: plain %v, %d bytes, complete %v", c.family, more, chunk, got.Plain, len(got.Text), r.Complete())
				}
			}
		}
	}
}

// A part that repeats its text field needs no more memory than one text.
func TestTextsOfOnePartAreBoundedTogether(t *testing.T) {
	r := New(llm.Route{Family: llm.Gemini}, false, 200, plainJSON)
	r.Collect()
	r.Feed([]byte(`{"candidates":[{"content":{"parts":[{`))
	piece := []byte(`"text":"` + strings.Repeat("x", 1<<20) + `",`)
	for range 20 {
		r.Feed(piece)
		if n := cap(r.ev.pending); n > 2*maxText {
			t.Fatalf("%d bytes are held", n)
		}
	}
	r.Feed([]byte(`"thought":false}]}}]}`))
	if r.Text().Plain {
		t.Error("what did not fit is not missed")
	}
}

func TestAHollowTextIsNoAnswer(t *testing.T) {
	for body, want := range map[string]bool{
		`{}`: true, `null`: true, `[]`: true, `{"login":"please"}`: true,
		`{"choices":[{"message":{"content":"hi"}}]}`:                      false,
		`{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`: false,
	} {
		r := New(llm.Route{Family: llm.OpenAI, Operation: "chat", Generates: true}, false, 200, http.Header{"Content-Type": {"application/json"}})
		r.Feed([]byte(body))
		r.End()
		if r.Hollow() != want {
			t.Errorf("%s: hollow is %v, want %v", body, r.Hollow(), want)
		}
	}
}
