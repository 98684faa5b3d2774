package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRewritesMutexesAndNothingElse(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"none", "package p\n\nimport \"sync\"\n\nvar o sync.Once\n", ""},
		{"no sync", "package p\n\nvar Mutex int\n", ""},
		{"all", "package p\n\nimport \"sync\"\n\nvar m sync.Mutex\n", "package p\n\nimport lockwatch \"x/w\"\n\nvar m lockwatch.Mutex\n"},
		{"some", "package p\n\nimport \"sync\"\n\nvar m sync.RWMutex\nvar o sync.Once\n",
			"package p\n\nimport \"sync\"; import lockwatch \"x/w\"\n\nvar m lockwatch.RWMutex\nvar o sync.Once\n"},
		{"in a group", "package p\n\nimport (\n\t\"sync\"\n)\n\ntype T struct{ sync.Mutex; sync.Once }\n",
			"package p\n\nimport (\n\t\"sync\"; lockwatch \"x/w\"\n)\n\ntype T struct{ lockwatch.Mutex; sync.Once }\n"},
		{"by another name", "package p\n\nimport s \"sync\"\n\nfunc f() { var m s.Mutex; m.Lock() }\n",
			"package p\n\nimport lockwatch \"x/w\"\n\nfunc f() { var m lockwatch.Mutex; m.Lock() }\n"},
		{"of a variable", "package p\n\nimport \"sync\"\n\nvar o sync.Once\n\nfunc f(sync struct{ Mutex int }) int { return sync.Mutex }\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := rewrite("p.go", []byte(tt.text), "x/w")
			if err != nil || string(got) != tt.want {
				t.Errorf("got %q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}

const inverted = `package m

import "sync"

var a, b sync.Mutex

func Forth() { a.Lock(); b.Lock(); b.Unlock(); a.Unlock() }
func Back()  { b.Lock(); a.Lock(); a.Unlock(); b.Unlock() }
`

const innocent = `package m

import (
	"sync"
	"testing"
)

func TestBoth(t *testing.T) {
	for _, f := range []func(){Forth, Back} {
		var wg sync.WaitGroup
		wg.Go(f)
		wg.Wait()
	}
}
`

// The two goroutines never collide in the test, but the inversion is found.
func TestFindsLocksTakenInBothOrders(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{"go.mod": "module m\n\ngo 1.26.0\n", "go.sum": "", "m.go": inverted, "m_test.go": innocent}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		files["tools/"+name] = string(text)
	}
	if err := os.Mkdir(filepath.Join(root, "tools"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(&out, root, "", "1m", []string{"."}); err == nil || !strings.Contains(out.String(), "Inconsistent locking") {
		t.Errorf("got %v and\n%s", err, &out)
	}
	out.Reset()
	if err := run(&out, root, "TestBoth", "1m", []string{"."}); err != nil || !strings.Contains(out.String(), "1 files have their mutexes watched") {
		t.Errorf("without that test: got %v and\n%s", err, &out)
	}
}
