package reading_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing/iotest"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/reading"
)

// pass copies an answer to the caller. It holds back up to hold bytes until there is content, so that another answer can
// replace this one. In that case it returns an error.
func pass(to io.Writer, body io.Reader, r *reading.Reader, hold int) error {
	var kept []byte
	open := false
	send := func(whole []byte) error {
		if kept = append(kept, whole...); !open && !r.Committed() && !r.Complete() && len(kept) < hold {
			return nil
		}
		open = true // a proxy writes the status and the header here
		_, err := to.Write(kept)
		kept = kept[:0]
		return err // a proxy flushes here
	}
	chunk := make([]byte, 32<<10)
	for {
		n, readErr := body.Read(chunk)
		whole := r.Feed(chunk[:n])
		if p := r.Failed(); p != nil && !open {
			return fmt.Errorf("%v: %s", p.Outcome.Class, p.Code)
		}
		if err := send(whole); err != nil {
			return err
		}
		if readErr != nil {
			return finish(to, r, readErr, open, send)
		}
	}
}

// finish ends the answer, with an error if it was cut.
func finish(to io.Writer, r *reading.Reader, readErr error, open bool, send func([]byte) error) error {
	if err := send(r.End()); err != nil {
		return err
	}
	switch {
	case r.Complete(), r.Blind() && readErr == io.EOF, r.Failed() != nil:
		return nil
	case !open:
		return errors.New("failed: cut before anything was said")
	}
	to.Write(r.Cut("upstream_cut", "the upstream ended its answer early"))
	return errors.New("cut") // a proxy closes the connection here
}

func ExampleReader() {
	event := func(s string) string { return "data: {\"choices\":[{\"delta\":{" + s + "}}]}\n\n" }
	role, hello := event(`"role":"assistant","content":""`), event(`"content":"Hello"`)
	header := http.Header{"Content-Type": {"text/event-stream"}}
	for _, body := range []string{
		role + "data: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\"}}\n\n",
		role + hello + "data: {\"choi",
		role + hello + "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
	} {
		r := reading.New(llm.Route{Family: llm.OpenAI}, true, http.StatusOK, header)
		r.WithoutUsage()
		err := pass(os.Stdout, iotest.OneByteReader(strings.NewReader(body)), r, 64<<10)
		fmt.Printf("-- %v; used %+v\n", err, r.Usage().Total())
	}
	// Output:
	// -- throttled: rate_limit_exceeded; used 0
	// data: {"choices":[{"delta":{"role":"assistant","content":""}}]}
	//
	// data: {"choices":[{"delta":{"content":"Hello"}}]}
	//
	// data: {"error":{"code":"upstream_cut","message":"the upstream ended its answer early","param":null,"type":"server_error"}}
	//
	// -- cut; used 0
	// data: {"choices":[{"delta":{"role":"assistant","content":""}}]}
	//
	// data: {"choices":[{"delta":{"content":"Hello"}}]}
	//
	// data: [DONE]
	//
	// -- <nil>; used 10
}

func ExampleReader_Text() {
	r := reading.New(llm.Route{Family: llm.Anthropic}, false, http.StatusOK, http.Header{"Content-Type": {"application/json"}})
	r.Collect()
	r.Feed([]byte(`{"id":"msg_1","type":"message","model":"claude","content":[{"type":"text","text":"Hel`))
	r.Feed([]byte(`lo"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":2}}`))
	fmt.Println(r.Complete(), r.Truncated())
	fmt.Printf("%+v\n%+v\n", r.Text(), r.Usage())
	// Output:
	// true false
	// {Text:Hello Finish:end_turn Model:claude ID:msg_1 Plain:true Thoughts:false}
	// {Input:100 Output:2 CacheRead:90 CacheWrite:0 WriteHour:0 Said:true Tier:}
}
