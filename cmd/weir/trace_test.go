package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// weir trace finds a trace by its ID in either form, where the file or a flag says, and says in plain words what it lacks.
func TestTrace(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/traces/6553f100000000000000000000000001" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"errors":[{"code":404,"msg":"trace not found"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"spans":[{"spanID":"01","operationName":"GET up","startTime":1700000000250000,"duration":50000,"processID":"p"}],"processes":{"p":{"serviceName":"weir"}}}]}`)
	}))
	defer s.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text+"\nupstreams: {up: {url: \"http://127.0.0.1:1\"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	with := write("with.yaml", "traces: {url: \"http://127.0.0.1:4318\", jaeger: \""+s.URL+"\"}")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-config", with, "6553f100000000000000000000000001"}, "50.0ms  GET up  (weir)\n"},
		{[]string{"-jaeger", s.URL, "1-6553f100-000000000000000000000001"}, "50.0ms  GET up  (weir)\n"},
		{[]string{"-jaeger", s.URL, "00-6553f100000000000000000000000001-b7ad6b7169203331-01"}, "GET up"},
		{[]string{"-jaeger", s.URL, "-json", "6553F100000000000000000000000001"}, `"Name":"GET up"`},
		{[]string{"-jaeger", s.URL, "6553f100000000000000000000000002"}, "6553f100000000000000000000000002: there is no such trace"},
		{[]string{"-jaeger", s.URL, "gpt"}, "that is no ID of a trace"},
		{[]string{"-jaeger", s.URL, "-at", "noon", "6553f100000000000000000000000002"}, "-at: want a time"},
		{[]string{"-config", write("none.yaml", ""), "6553f100000000000000000000000001"}, "has no traces"},
		{[]string{"-config", write("sent.yaml", "traces: {url: \"http://127.0.0.1:4318\"}"), "6553f100000000000000000000000001"}, "but not where they are found"},
		{[]string{}, "name the trace by its ID"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), world{args: append([]string{"trace"}, c.args...), out: &out, err: &out, env: noEnv})
		if err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("weir trace %v: got %q, want %q", c.args, out.String(), c.want)
		}
	}
}
