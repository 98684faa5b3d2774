package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A record has the names of the mutants that were caught in one state of the tree, so that an interrupted run can continue. A
// nil record is empty.
type record struct {
	path   string
	caught map[string]bool
}

// openRecord reads the record at path. It starts a new one if the tree has changed or anew is set.
func openRecord(path, state string, anew bool) (*record, error) {
	r := &record{path: path, caught: make(map[string]bool)}
	raw, err := os.ReadFile(path)
	if first, names, _ := strings.Cut(string(raw), "\n"); err == nil && first == state && !anew {
		for name := range strings.Lines(names) {
			r.caught[strings.TrimSpace(name)] = true
		}
		return r, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return r, os.WriteFile(path, []byte(state+"\n"), 0o644)
}

func (r *record) add(m *Mutant) error {
	if r == nil {
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, m.Name)
	return closed(f, err)
}

func closed(f io.Closer, err error) error {
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// resume removes the mutants that an earlier run has caught in the same tree.
func (r *runner) resume(all []Mutant, again bool, out io.Writer) ([]Mutant, error) {
	state, err := stateOf(r.root)
	if err != nil {
		return nil, err
	}
	if r.seen, err = openRecord(filepath.Join(r.root, "bin", "mutants.caught"), state, again); err != nil {
		return nil, err
	}
	open := slices.DeleteFunc(slices.Clone(all), func(m Mutant) bool { return r.seen.caught[m.Name] })
	if len(open) < len(all) {
		fmt.Fprintf(out, "%d of %d were caught before in this tree (-again tries them, too)\n", len(all)-len(open), len(all))
	}
	return open, nil
}

// stateOf returns a hash of all files below root that tests may depend on.
func stateOf(root string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules"):
			return fs.SkipDir
		case !d.Type().IsRegular() || strings.HasSuffix(name, ".md"):
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path)
		_, err = io.Copy(h, f)
		return closed(f, err)
	})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}
