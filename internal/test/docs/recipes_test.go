//go:build unix

package docs

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

const recipes = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
upstreams:
  openai: {url: "UPSTREAM", preset: openai}
  github: {url: "UPSTREAM", preset: github}
`

// recipePages have programs that need only the upstreams above.
var recipePages = map[string]bool{"call-openai-from-a-fleet.md": true, "call-github.md": true}

// Programs in Python and JavaScript run through a weir as written on the pages.
func TestProgramsOfRecipesWork(t *testing.T) {
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/repos/golang/go" && r.Header.Get("Authorization") == "Bearer secret" {
			_, _ = io.WriteString(w, `{"full_name": "printed"}`)
			return
		}
		if r.URL.Path == "/v1/chat/completions" && r.Header.Get("Authorization") == "Bearer secret" {
			_, _ = io.WriteString(w, `{"choices": [{"message": {"role": "assistant", "content": "printed"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(upstream.Close)
	w := served.Start(t, strings.ReplaceAll(recipes, "UPSTREAM", upstream.URL))
	programs := map[string][]string{"python": {"python3"}, "js": {"node"}}
	n := int64(0)
	for _, s := range all {
		program := programs[s.Kind]
		if program == nil || !recipePages[filepath.Base(s.File)] {
			continue
		}
		n++
		path := filepath.Join(t.TempDir(), "program."+s.Kind)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(s.Text, "127.0.0.1:8080", w.Serve.Listen)), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), program[0], path)
		c.Env = append(os.Environ(), "OPENAI_API_KEY=secret", "GITHUB_TOKEN=secret")
		if out, err := c.CombinedOutput(); err != nil || string(out) != "printed\n" {
			t.Errorf("%s:%d: %v\n%s", s.File, s.Line, err, out)
		}
	}
	if n < 3 || calls.Load() != n {
		t.Errorf("%d programs made %d calls, want one each", n, calls.Load())
	}
}
