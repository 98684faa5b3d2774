package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/cli"
)

const shopConfig = "../../examples/chat/weir.yaml"

// static runs weir static.
func static(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	err = run(t.Context(), world{args: append([]string{"static"}, args...), out: &o, err: &e, env: noEnv})
	return o.String(), e.String(), err
}

func TestStaticTestShowsWhatAnswersAndWhy(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"how do I return a shoe", "-config", shopConfig}, []string{"answers.yaml (tier static of chat)", "answered by returns", "The answer (en):", "within 30 days"}},
		{[]string{"-config", shopConfig, "-language", "ja", "商品を返品したいのですが"}, []string{"answered by returns", "The answer (ja):", "30日"}},
		{[]string{"-answers", "../../examples/chat/answers.yaml", "do you ship to Germany?"}, []string{"answered by international-shipping"}},
	} {
		out, said, err := static(t, append([]string{"test"}, c.args...)...)
		if err != nil || said != "" {
			t.Errorf("%q: %v, %q", c.args, err, said)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q: no %q in\n%s", c.args, want, out)
			}
		}
	}
}

func TestStaticTestFindsNothing(t *testing.T) {
	out, _, err := static(t, "test", "what is the capital of France", "-config", shopConfig)
	if !errors.Is(err, cli.ErrFound) || !strings.Contains(out, "no answer") {
		t.Errorf("got %v and %s", err, out)
	}
}

func TestStaticTestPrintsAnObject(t *testing.T) {
	out, _, err := static(t, "test", "-json", "where is my order?", "-config", shopConfig)
	var got struct {
		File, Upstream, Tier, Answer string
		Language                     string `json:"answer_language"`
		Candidates                   []struct {
			ID      string
			Answers bool
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &got) != nil {
		t.Fatalf("got %v and %s", err, out)
	}
	if got.Upstream != "chat" || got.Tier != "static" || got.Answer == "" || got.Language != "en" || len(got.Candidates) == 0 || !got.Candidates[0].Answers {
		t.Errorf("got %+v", got)
	}
}

func TestStaticTestSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := file("bad.yaml", "answers:\n  - questions: [hi]\n    anwser: ho\n  - id: x\n    answer: y\n")
	plain := file("plain.yaml", "upstreams: {a: {url: https://a.example}}\n")
	broken := file("broken.yaml", "upstreams: {a: {ulr: https://a.example}}\n")
	for _, c := range []struct {
		name string
		args []string
		err  error // nil means any other
		want []string
	}{
		{"every mistake of a file", []string{"test", "hi", "-answers", bad}, cli.ErrFound, []string{"bad.yaml:3", "anwser", "bad.yaml:4"}},
		{"no such file", []string{"test", "hi", "-answers", filepath.Join(dir, "none")}, cli.ErrFound, []string{"none"}},
		{"a configuration without answers", []string{"test", "hi", "-config", plain}, nil, []string{"no cascade has static answers", "-answers"}},
		{"a bad configuration", []string{"test", "hi", "-config", broken}, cli.ErrFound, []string{"ulr"}},
		{"no question", []string{"test"}, cli.ErrUsage, []string{"QUESTION is missing", "usage: weir static test"}},
		{"an empty question", []string{"test", " "}, cli.ErrUsage, []string{"QUESTION is missing"}},
		{"no quotes", []string{"test", "where", "is", "it"}, cli.ErrUsage, []string{`"where is it"`}},
		{"no such language", []string{"test", "hi", "-language", "tlh"}, cli.ErrUsage, []string{`--language "tlh"`, "ja"}},
		{"no command", nil, cli.ErrUsage, []string{"weir static COMMAND"}},
		{"another command", []string{"tset"}, cli.ErrUsage, []string{`"tset"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, said, err := static(t, c.args...)
			if err == nil || c.err != nil && !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if c.err == nil {
				said = err.Error()
			}
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("no %q in %q", want, said)
				}
			}
		})
	}
}
