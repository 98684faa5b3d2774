package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// broken returns the new text of each file that the mutant changes, by path.
func (m *Mutant) broken(root string) (files map[string]string, err error) {
	files = make(map[string]string)
	for _, e := range m.Edits {
		text, ok := files[e.File]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, err
			}
			text = string(raw)
		}
		if files[e.File], err = e.apply(text); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (e *Edit) apply(text string) (string, error) {
	switch n := strings.Count(text, e.Old); n {
	case 0:
		return "", fmt.Errorf("%s: the old text is not there any more", e.File)
	case 1:
		return strings.Replace(text, e.Old, e.New, 1), nil
	default:
		return "", fmt.Errorf("%s: the old text is there %d times; add a line that tells them apart", e.File, n)
	}
}

// overlay writes the changed files below dir, and the overlay file for go test.
func (m *Mutant) overlay(root, dir string) (path string, err error) {
	files, err := m.broken(root)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for file, text := range files {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, raw, 0o600)
}

// moduleRoot returns the nearest parent directory with a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			err = errors.New("no go.mod here or above")
		}
		dir = up
	}
	return "", err
}
