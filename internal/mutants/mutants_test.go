package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// A mutant whose old text no longer exists tests nothing. After a change of the text, correct the entry.
func TestEveryMutantApplies(t *testing.T) {
	all, err := chosen("", "")
	if err != nil {
		t.Fatal(err)
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if _, err := all[i].broken(root); err != nil {
			t.Errorf("list/%s: mutant %s: %v", all[i].Place, all[i].Name, err)
		}
		for _, pkg := range all[i].Test {
			if _, err := os.Stat(filepath.Join(root, pkg)); err != nil {
				t.Errorf("list/%s: mutant %s: %v", all[i].Place, all[i].Name, err)
			}
		}
	}
	if len(all) < 40 {
		t.Errorf("only %d mutants", len(all))
	}
}

// -file selects the mutants of a package's files.
func TestFileSelectsMutants(t *testing.T) {
	some, err := chosen("^hold/", "^fleet/hold[.]go$")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range some {
		if m.Edits[0].File != "fleet/hold.go" {
			t.Errorf("%s changes %s", m.Name, m.Edits[0].File)
		}
	}
	if _, err := chosen("", "^none$"); err == nil {
		t.Error("no mutant changes such a file, and there is no error")
	}
}

const entry = `# a comment

mutant m
why     it matters
file    a.go
test    . ./b
run     TestA
old
	one

		two
new
	three
file    b.go
old
	four
new
end
`

func TestReadsAnEntry(t *testing.T) {
	all, err := readAll(fstest.MapFS{"area.txt": {Data: []byte(entry)}})
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	m := all[0]
	if m.Name != "area/m" || m.Why != "it matters" || strings.Join(m.Test, " ") != ". ./b" || m.Run != "TestA" || m.Place != "area.txt:3" {
		t.Errorf("got %+v", m)
	}
	want := []Edit{{"a.go", "one\n\n\ttwo\n", "three\n"}, {"b.go", "four\n", ""}}
	if len(m.Edits) != 2 || m.Edits[0] != want[0] || m.Edits[1] != want[1] {
		t.Errorf("got  %q\nwant %q", m.Edits, want)
	}
}

func TestSaysWhatIsWrongWithAList(t *testing.T) {
	tests := map[string]string{
		"why x\n":                        `a.txt:1: "why": an entry begins with mutant`,
		"mutant m\nmutant n\n":           "a.txt:2: mutant a/m has no end",
		"mutant m\n":                     "a.txt:1: mutant a/m has no end",
		"mutant m n\n":                   "the name is one word",
		"mutant m\nwhat x\n":             `a.txt:2: "what": want mutant, why`,
		"mutant m\n\ttext\n":             "a text must stand beneath old or new",
		"mutant m\nfile f\nold\n  x\n":   "a.txt:4: a text has a tab before each line",
		"mutant m\nold\n":                "a.txt:2: old: file must stand before it",
		"mutant m\nwhy x\ntest .\nend\n": "a.txt:4: mutant a/m: must have why, test, file and old",
		"mutant m\nwhy x\ntest .\nfile f\nold\n\tx\nnew\n\tx\nend\n": "f: old must be a text, and new another",
		entry + entry: "a.txt:21: mutant a/m: the name is taken by a.txt:3",
	}
	for list, want := range tests {
		if _, err := readAll(fstest.MapFS{"a.txt": {Data: []byte(list)}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\ngot  %v\nwant %s", list, err, want)
		}
	}
}

// The runner runs on a separate small module.
func TestTellsWhatBecameOfAMutant(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module m\n\ngo 1.26\n",
		"m.go":      "package m\n\nfunc Two() int { return 1 + 1 }\n\nfunc Hidden() int { return 3 }\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fail()\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of := func(old, new string) *Mutant {
		return &Mutant{Name: "m/m", Edits: []Edit{{"m.go", old, new}}, Test: []string{"."}}
	}
	r := &runner{root: root, timeout: 5 * time.Second}
	tests := []struct {
		name   string
		m      *Mutant
		want   Verdict
		detail string
	}{
		{"noticed", of("1 + 1", "1 + 2"), Caught, "TestTwo"},
		{"panics", of("return 1 + 1", `panic("broken")`), Caught, "TestTwo"},
		{"hangs", of("return 1 + 1", "for { Hidden() }"), Hung, ""},
		{"unnoticed", of("3", "4"), Survived, "all tests pass"},
		{"gone", of("1 + 5", "4"), Stale, "not there any more"},
		{"ambiguous", of("return", "throw"), Stale, "there 2 times"},
		{"does not compile", of("1 + 1", "x"), Stale, "undefined: x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := r.try(context.Background(), tt.m); got.Verdict != tt.want || !strings.Contains(got.Detail, tt.detail) {
				t.Errorf("got %v: %s; want %v: %s", got.Verdict, got.Detail, tt.want, tt.detail)
			}
		})
	}
	misnamed := of("1 + 1", "1 + 2")
	misnamed.Run = "TestThree"
	if got := r.try(context.Background(), misnamed); got.Verdict != Survived || !strings.Contains(got.Detail, "no such test") {
		t.Errorf("a test that is not there: got %v: %s", got.Verdict, got.Detail)
	}

	var out bytes.Buffer
	err := r.tryAll(context.Background(), []Mutant{*of("1 + 1", "1 + 2"), *of("3", "4")}, 2, &out)
	if err == nil || !strings.Contains(out.String(), "1 of 2 mutants caught") || !strings.Contains(out.String(), "SURVIVED") {
		t.Errorf("got %v and\n%s", err, &out)
	}
}

func TestRunsOfAPackageAreThoseOfItsMutants(t *testing.T) {
	got := runsOf([]Mutant{
		{Test: []string{"./a", "./b"}, Run: "TestY"},
		{Test: []string{"./a"}, Run: "TestX"},
		{Test: []string{"./a"}, Run: "TestY"},
		{Test: []string{"./b"}},
	})
	if len(got) != 2 || got["./a"] != "TestX|TestY" || got["./b"] != "" {
		t.Errorf("got %q", got)
	}
}

// An interrupted run continues if the tree is unchanged.
func TestARunIsResumed(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "m.go")
	if err := os.WriteFile(file, []byte("package m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []Mutant{{Name: "m/a"}, {Name: "m/b"}}
	left := func(again bool) string {
		t.Helper()
		var out bytes.Buffer
		r := &runner{root: root}
		some, err := r.resume(all, again, &out)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range some {
			names = append(names, some[i].Name)
		}
		if len(some) > 0 {
			if err := r.seen.add(&some[0]); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Join(names, " ")
	}
	for _, step := range []struct {
		name, change string
		again        bool
		want         string
	}{
		{"first", "", false, "m/a m/b"},
		{"resumed", "", false, "m/b"},
		{"all done", "", false, ""},
		{"asked for again", "", true, "m/a m/b"},
		{"resumed anew", "", false, "m/b"},
		{"after a change", "package m // changed\n", false, "m/a m/b"},
	} {
		if step.change != "" {
			if err := os.WriteFile(file, []byte(step.change), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := left(step.again); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}
