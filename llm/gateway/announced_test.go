package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// A watched is a body that checks the memory used by the process before each read.
type watched struct {
	t      *testing.T
	whole  *bytes.Reader
	before int64
	came   int64
}

func (w *watched) Read(p []byte) (int, error) {
	used, _, _ := buffers.Bodies.Use()
	if held := used - w.before; held > 4<<10+33*w.came {
		w.t.Errorf("%d bytes are held of a body of which %d have come", held, w.came)
	}
	n, err := w.whole.Read(p[:min(len(p), 10_000)])
	w.came += int64(n)
	return n, err
}

func (*watched) Close() error { return nil }

// A request's route depends on its own path, not on the previous request's.
func TestARequestIsWhatItsPathSays(t *testing.T) {
	d, err := gateway.New(gateway.Options{Name: "chat", Family: llm.Gemini, Tokens: new(tokens.Estimator)})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"model":"m","messages":[],"contents":[]}`
	for _, tt := range []struct{ path, query, operation, model string }{
		{completions, "", "chat", "m"}, {completions, "", "chat", "m"},
		{"/v1/embeddings", "", "embeddings", "m"},
		{"/v1beta/models/flash:generateContent", "", "generate", "flash"},
		{"/v1beta/models/pro:generateContent", "", "generate", "pro"}, {"/v1beta/models/pro:generateContent", "alt=sse", "generate", "pro"},
		{"/v1/files", "", "other", "m"}, {completions, "x=y", "chat", "m"}, {"/v1/files", "", "other", "m"},
		{"/v1beta/models/" + strings.Repeat("long", 200) + ":generateContent", "", "generate", strings.Repeat("long", 200)},
		{"/v1beta/models/pro:generateContent", "", "generate", "pro"},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://weir"+tt.path+"?"+tt.query, strings.NewReader(body))
		x, f := d.Hear(r, tt.path)
		if f != nil {
			t.Fatalf("%+v: %+v", tt, f)
		}
		var c weir.Call
		x.Describe(&c)
		if c.Operation != tt.operation || tt.operation != "other" && c.Keys[gateway.Model] != tt.model {
			t.Errorf("%+v: taken for %s of %s", tt, c.Operation, c.Keys[gateway.Model])
		}
		if at := x.(httpx.Pather).Path(); tt.operation != "other" && at != tt.path {
			t.Errorf("%+v: sent to %s", tt, at)
		}
	}
}

// The memory used for an announced body is proportional to the bytes received, with or without a length.
func TestMemoryOfAnnouncedBodies(t *testing.T) {
	d, err := gateway.New(gateway.Options{Name: "chat", Tokens: new(tokens.Estimator)})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{10, 5000, 70_000, 1 << 20, 20 << 20} {
		for _, announced := range []bool{true, false} {
			body := fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":%q}]}`, strings.Repeat("w", size))
			before, _, _ := buffers.Bodies.Use()
			r, _ := http.NewRequest(http.MethodPost, "http://weir"+completions, nil)
			r.Body, r.ContentLength = &watched{t: t, whole: bytes.NewReader([]byte(body)), before: before}, -1
			if announced {
				r.ContentLength = int64(len(body))
			} else if size > 1<<20 {
				continue // buffers double in size: tested with the budget
			}
			x, f := d.Hear(r, completions)
			if f != nil {
				t.Fatalf("%d bytes: %+v", size, f)
			}
			if got, err := io.ReadAll(r.Body); err != nil || string(got) != body {
				t.Errorf("%d bytes, announced %v: %d bytes are sent on, %v", size, announced, len(got), err)
			}
			x.(httpx.Ender).End()
			if after, _, _ := buffers.Bodies.Use(); after != before {
				t.Errorf("%d bytes, announced %v: %d stay held", size, announced, after-before)
			}
		}
	}
}

// A body that does not fit in memory is refused. If the configuration allows it, the body is forwarded, and its cost is
// estimated from its size or from the maximum size.
func TestABodyForWhichThereIsNoRoom(t *testing.T) {
	const size = 3 << 20
	body := fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":%q}]}`, strings.Repeat("w", size))
	full := buffers.Bodies.Total()/2 - buffers.Small // for large bodies
	if !buffers.Bodies.Take(full) {
		t.Fatal("the budget is in use")
	}
	defer buffers.Bodies.Give(full)
	for free := buffers.Bodies.Total() / 4; free > 0; free -= buffers.Small { // a body without a length may grow into this part
		if !buffers.Bodies.Take(buffers.Small) {
			t.Fatal("the budget is in use")
		}
		defer buffers.Bodies.Give(buffers.Small)
	}
	for _, tt := range []struct {
		pass, announced bool
		least           int64 // minimum charge in tokens
	}{{false, true, 0}, {false, false, 0}, {true, true, size / 8}, {true, false, 32 << 20 / 8}} {
		synctest.Test(t, func(t *testing.T) {
			d, err := gateway.New(gateway.Options{Name: "chat", Tokens: new(tokens.Estimator), Pass: tt.pass})
			if err != nil {
				t.Fatal(err)
			}
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://weir"+completions, io.MultiReader(strings.NewReader(body)))
			if r.ContentLength = -1; tt.announced {
				r.ContentLength = int64(len(body))
			}
			x, f := d.Hear(r, completions)
			defer x.(httpx.Ender).End()
			if !tt.pass {
				if f == nil || f.Status != http.StatusServiceUnavailable || f.Wait == 0 {
					t.Errorf("%+v: %+v", tt, f)
				}
				return
			}
			if f != nil {
				t.Fatalf("%+v: %+v", tt, f)
			}
			var c weir.Call
			if x.Describe(&c); c.Cost["tokens"] < tt.least {
				t.Errorf("%+v: charged %v", tt, c.Cost)
			}
			if got, err := io.ReadAll(r.Body); err != nil || string(got) != body {
				t.Errorf("%+v: %d bytes are sent on, %v", tt, len(got), err)
			}
		})
	}
}
