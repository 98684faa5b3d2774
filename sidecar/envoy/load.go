package envoy

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// maxFile is the size of the largest file, in bytes.
const maxFile = 16 << 20

// Load reads rules from a file, or from all *.yaml and *.yml files in a directory. It returns all errors as
// doc.Errors, unless a file cannot be read.
func Load(path string) (*Rules, error) {
	files, err := read(path)
	if err != nil {
		return nil, err
	}
	return parse(files)
}

// Parse reads rules from the content of one file.
func Parse(name string, data []byte) (*Rules, error) {
	return parse([]file{{name, data}})
}

type file struct {
	name string
	data []byte
}

func read(path string) ([]file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("rate limit rules: %w", err)
	}
	names := []string{path}
	if info.IsDir() {
		if names, err = inside(path); err != nil {
			return nil, err
		}
	}
	files := make([]file, len(names))
	for i, name := range names {
		data, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("rate limit rules: %w", err)
		}
		files[i] = file{name, data}
	}
	return files, nil
}

func inside(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("rate limit rules: %w", err)
	}
	var names []string
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("rate limit rules: no *.yaml or *.yml file in %s", dir)
	}
	slices.Sort(names)
	return names, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxFile>>20)
	}
	return data, err
}

// fingerprint returns a value that differs for each state of the files. An unreadable file is a state as well.
func fingerprint(path string) string {
	files, err := read(path)
	if err != nil {
		return err.Error()
	}
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %d ", f.name, len(f.data))
		h.Write(f.data)
	}
	return string(h.Sum(nil))
}

func parse(files []file) (*Rules, error) {
	rules := &Rules{domains: make(map[string]*rule)}
	var all doc.Errors
	for _, f := range files {
		r := newReader(f.name, rules)
		r.read(f.data)
		all = append(all, r.Errs.Sorted()...)
	}
	if len(all) > 0 {
		return nil, all
	}
	return rules, nil
}
