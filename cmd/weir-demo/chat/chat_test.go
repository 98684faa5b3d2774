package chat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

// direct replaces the sidecar by the primary itself.
func direct(t *testing.T, wrap func(http.Handler) http.Handler) func(primary, elsewhere string) (*Sidecar, error) {
	return func(string, string) (*Sidecar, error) {
		p := provider(primaryModel, llmsim.Model{}, "none")
		s := httptest.NewServer(wrap(http.StripPrefix("/chat", p)))
		return &Sidecar{URL: s.URL, Close: s.Close}, nil
	}
}

// tiered adds the header for an answer of the primary.
func tiered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Weir-Tier", "primary")
		w.Header().Set("X-Weir-Cost", "0.000125 USD")
		h.ServeHTTP(w, r)
	})
}

func TestWhatIsPrintedFitsATerminal(t *testing.T) {
	t.Parallel()
	for _, colour := range []bool{false, true} {
		var out bytes.Buffer
		c := Config{Act: time.Second, Rate: 20, Acts: []string{"healthy"}, Out: &out, Colour: colour, Sidecar: direct(t, tiered)}
		if err := Run(t.Context(), c); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		text := out.String()
		if strings.Contains(text, "\x1b") != colour {
			t.Errorf("colour is %v:\n%s", colour, text)
		}
		for _, want := range []string{"All is well.", "X-Weir-Tier:", "20, 20 answered", "$0.0025", "All 20 calls were answered"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		for line := range strings.Lines(text) {
			if n := width(strings.TrimRight(line, "\n")); !colour && n > lineWidth {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

func TestACallThatIsNotAnsweredIsToldOf(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	broken := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
	}
	err := Run(t.Context(), Config{Act: time.Second, Rate: 2, Acts: []string{"dark"}, Out: &out, Sidecar: direct(t, broken)})
	if !errors.Is(err, ErrUnanswered) || !strings.Contains(out.String(), "2 of 2 calls were not answered") || !strings.Contains(out.String(), "502") {
		t.Errorf("got %v and %s", err, out.String())
	}
}

func TestStaysUntilItIsTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{Act: time.Second, Rate: 2, Acts: []string{"healthy"}, Out: w, Stay: true, Sidecar: direct(t, tiered)})
		_ = w.Close()
	}()
	var all bytes.Buffer
	for b := make([]byte, 512); !strings.Contains(all.String(), "Press Ctrl-C to stop"); {
		n, err := r.Read(b)
		if all.Write(b[:n]); err != nil {
			t.Fatalf("%v after %s", err, all.String())
		}
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	if err := <-done; err != nil {
		t.Errorf("got %v, want a clean end", err)
	}
}

// The demonstration rejects answers that an SDK would reject.
func TestOnlyWholeAnswersCount(t *testing.T) {
	const chunk = `data: {"object":"chat.completion.chunk","choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}` + "\n\n"
	for name, c := range map[string]struct {
		stream bool
		body   string
		ok     bool
	}{
		"a stream":            {true, chunk + "data: [DONE]\n\n", true},
		"no end":              {true, chunk, false},
		"no content":          {true, "data: [DONE]\n\n", false},
		"an error inside":     {true, chunk + `data: {"error":{"message":"x"}}` + "\n\n", false},
		"no JSON":             {true, "data: {\n\n", false},
		"whole":               {false, `{"object":"chat.completion","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`, true},
		"cut":                 {false, `{"object":"chat.completion","choices":[`, false},
		"an error":            {false, `{"error":{"message":"x"}}`, false},
		"a page":              {false, `<html>`, false},
		"nothing was said":    {false, `{"object":"chat.completion","choices":[{"message":{"content":""},"finish_reason":"stop"}]}`, false},
		"no reason to finish": {false, `{"object":"chat.completion","choices":[{"message":{"content":"hi"}}]}`, false},
	} {
		resp := &http.Response{Body: io.NopCloser(strings.NewReader(c.body))}
		read := readWhole
		if c.stream {
			read = readStream
		}
		text, err := read(resp, func() {})
		if (err == nil) != c.ok || c.ok && text != "hi" {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
}

// Each question about an order is asked once, and the other questions repeatedly.
func TestQuestions(t *testing.T) {
	seen, sorts := make(map[string]int), make(map[string]bool)
	for n := range 200 {
		q := ask(n)
		seen[string(q.body)]++
		sorts[q.language] = true
		if q.language != languageOf(q.text) {
			t.Errorf("%s asks in another language: %s", q.name, q.text)
		}
	}
	again := 0
	for _, n := range seen {
		if n > 1 {
			again += n
		}
	}
	if again < 40 || again > 60 || len(sorts) != 2 {
		t.Errorf("%d of 200 questions were asked more than once, in %d languages", again, len(sorts))
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{clip("in short", 10), "in short"},
		{clip("much too long for this", 10), "much to..."},
		{clip("返品したいのですが", 10), "返品し..."},
		{thousands(999), "999"}, {thousands(1_234_567), "1,234,567"},
		{took(0.62), "0.6 ms"}, {took(121.4), "121 ms"}, {took(1222), "1.22 s"},
		{Attempts{}.String(), "received no attempts"}, {Attempts{All: 1}.String(), "1 attempt, 0 refused, 0 failed"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	err := Config{Act: time.Hour, Rate: 1000}.Validate()
	if err == nil || !strings.Contains(err.Error(), "-act") || !strings.Contains(err.Error(), "-rate") {
		t.Errorf("got %v", err)
	}
	if err := Run(t.Context(), Config{Out: io.Discard}); err == nil {
		t.Error("it ran without a sidecar")
	}
}
