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

func TestTraceShowsTraceOfXRay(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/Traces" || !strings.Contains(string(asked), "1-6553f100-000000000000000000000001") {
			_, _ = io.WriteString(w, `{"Traces":[]}`)
			return
		}
		_, _ = io.WriteString(w, `{"Traces":[{"Segments":[{"Document":"{\"id\":\"01\",\"name\":\"GET up\",\"start_time\":1700000000.25,\"end_time\":1700000000.3}"}]}]}`)
	}))
	defer s.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	env := func(name string) (string, bool) { return s.URL, name == "AWS_ENDPOINT_URL_XRAY" }
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text+"\nupstreams: {up: {url: \"http://127.0.0.1:1\"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	with := write("with.yaml", "traces: {region: eu-west-1}")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-config", with, "6553f100000000000000000000000001"}, "50.0ms  GET up\n"},
		{[]string{"-xray", "eu-west-1", "1-6553f100-000000000000000000000001"}, "50.0ms  GET up\n"},
		{[]string{"-xray", "eu-west-1", "00-6553f100000000000000000000000001-b7ad6b7169203331-01"}, "GET up"},
		{[]string{"-xray", "eu-west-1", "-json", "6553F100000000000000000000000001"}, `"Name":"GET up"`},
		{[]string{"-xray", "eu-west-1", "gpt"}, "not a trace ID"},
		{[]string{"-xray", "eu-west-1", "-at", "noon", "6553f100000000000000000000000002"}, `--at "noon": want a time`},
		{[]string{"-config", write("none.yaml", ""), "6553f100000000000000000000000001"}, "has no traces"},
		{[]string{"-config", write("sent.yaml", "traces: {url: \"http://127.0.0.1:4318\"}"), "6553f100000000000000000000000001"}, "reads only X-Ray"},
		{[]string{}, "ID is missing"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), world{args: append([]string{"trace"}, c.args...), out: &out, err: &out, env: env})
		if err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("weir trace %v: got %q, want %q", c.args, out.String(), c.want)
		}
	}
}
