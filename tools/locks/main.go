// Command locks runs tests with a detector of lock-order inversions instead of sync's mutexes. If two locks are taken
// in different orders at two places, both places wait for each other forever when they collide. Until then no test
// notices that.
//
//	cd tools && go run ./locks ./limit ./breaker/...
//
// The tree is not changed and its modules do not grow. Every file that uses sync.Mutex or sync.RWMutex is rewritten
// to a copy, which go test uses by -overlay. The detector (github.com/sasha-s/go-deadlock) is added to a copy of the
// tree's go.mod, at the version in tools/go.mod. If a test takes two locks in both orders, or one lock twice in the
// same goroutine, its package fails with both stacks.
//
// Only the order is checked, not how long a goroutine waits for a lock: timers for that would fire immediately in a
// synctest bubble.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	_ "github.com/sasha-s/go-deadlock" // named here so that tools/go.mod has its version
)

func main() {
	tree := flag.String("C", "..", "the `directory` of the tree")
	skip := flag.String("skip", "", "tests that are not run, as for go test")
	timeout := flag.String("timeout", "10m", "for the tests of one package")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdout, *tree, *skip, *timeout, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "locks:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, tree, skip, timeout string, packages []string) error {
	root, err := filepath.Abs(tree)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, n, err := writeOverlay(root, dir)
	if err != nil {
		return err
	}
	mod, err := writeMod(root, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d files have their mutexes watched\n", n)
	args := []string{"test", "-vet=off", "-modfile=" + mod, "-overlay=" + overlay, "-timeout=" + timeout}
	if skip != "" {
		args = append(args, "-skip="+skip)
	}
	test := exec.Command("go", append(args, packages...)...)
	test.Dir, test.Stdout, test.Stderr = root, out, out
	return test.Run()
}

const detector = `// Package lockwatch stands in for the mutexes of package sync.
package lockwatch

import deadlock "github.com/sasha-s/go-deadlock"

type (
	Mutex   = deadlock.Mutex
	RWMutex = deadlock.RWMutex
)

func init() { deadlock.Opts.DeadlockTimeout = 0 }
`

// writeOverlay writes a rewritten copy of every file of the tree that uses a mutex to dir, and the file for -overlay.
func writeOverlay(root, dir string) (path string, n int, err error) {
	replace := make(map[string]string)
	put := func(of string, text []byte) error {
		to := filepath.Join(dir, fmt.Sprintf("%03d_%s", len(replace), filepath.Base(of)))
		replace[of] = to
		return os.WriteFile(to, text, 0o600)
	}
	module, err := output(root, "go", "list", "-m")
	if err != nil {
		return "", 0, err
	}
	files, err := output(root, "go", "list", "-f", `{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`, "./...")
	if err != nil {
		return "", 0, err
	}
	for _, file := range strings.Fields(files) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", 0, err
		}
		watched, err := rewrite(file, text, module+"/internal/lockwatch")
		if err != nil {
			return "", 0, err
		}
		if watched != nil {
			n++
			err = put(file, watched)
		}
		if err != nil {
			return "", 0, err
		}
	}
	err = put(filepath.Join(root, "internal", "lockwatch", "lockwatch.go"), []byte(detector))
	raw, jsonErr := json.Marshal(map[string]any{"Replace": replace})
	path = filepath.Join(dir, "overlay.json")
	return path, n, cmp.Or(err, jsonErr, os.WriteFile(path, raw, 0o600))
}

// writeMod writes a copy of the tree's go.mod with the detector, at the version of this module.
func writeMod(root, dir string) (path string, err error) {
	path = filepath.Join(dir, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		if name == "go.sum" {
			ours, err := os.ReadFile(filepath.Join(root, "tools", name))
			if err != nil {
				return "", err
			}
			text = append(text, ours...)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	modules, err := output(filepath.Join(root, "tools"), "go", "list", "-m", "-f", "-require={{.Path}}@{{.Version}}",
		"github.com/sasha-s/go-deadlock", "github.com/petermattis/goid")
	if err != nil {
		return "", err
	}
	args := append([]string{"mod", "edit"}, strings.Fields(modules)...)
	_, err = output(dir, "go", append(args, path)...)
	return path, err
}

func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), err
}
