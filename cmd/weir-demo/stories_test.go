package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/cmd/weir-demo/demo"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

func TestDemoPrintsOneObjectAndEnds(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), world{args: []string{"-live", "0", "-json"}, out: &out, err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	var got demo.Result
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil || d.More() {
		t.Fatalf("got %v, want one object", err)
	}
	for _, story := range []string{"stall", "flood"} {
		if w := got[story]; w.Direct == nil || w.Weir == nil || w.Weir.Answered <= w.Direct.Answered {
			t.Errorf("%s: got %+v", story, w)
		}
	}
}

// Without a terminal the demo ends.
func TestDemoEndsWhereNobodyLooks(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := run(t.Context(), world{args: []string{"-live", "6s"}, out: file, err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil || strings.Count(string(text), "of calls answered again") != 3 || strings.Contains(string(text), "\x1b") {
		t.Errorf("got %s, %v; want three tables without colours", text, err)
	}
}

func TestDemoRefusesFlagsThatMakeNoSense(t *testing.T) {
	for _, args := range []string{"-live 1s", "-live -1s", "-for 9s", "-seed x", "-nope", "more"} {
		var said bytes.Buffer
		err := run(t.Context(), world{args: strings.Fields(args), out: io.Discard, err: &said})
		if !errors.Is(err, cli.ErrUsage) || !strings.Contains(said.String(), "usage: weir-demo") {
			t.Errorf("%s: got %v and %q, want the usage", args, err, said.String())
		}
	}
}

func TestNoTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for name, out := range map[string]io.Writer{"null": null, "pipe": w, "buffer": new(bytes.Buffer)} {
		if terminal(out) {
			t.Errorf("%s was taken for a terminal", name)
		}
	}
}

func TestDemoDefaults(t *testing.T) {
	env := func(string) (string, bool) { return "", false }
	c, err := storiesConfig(world{out: io.Discard, err: io.Discard, env: env})
	if err != nil || c.Live != 20*time.Second || c.Stay || c.Colour || c.Metrics == nil || c.Watch == nil {
		t.Errorf("got %+v, %v", c, err)
	}
}
