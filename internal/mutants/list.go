package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// A Mutant is one harmful change and the tests that must detect it.
type Mutant struct {
	Name  string // area/name
	Why   string // the consequence of the change
	Edits []Edit
	Test  []string // packages
	Run   string   // expression of their tests; "" means all
	Place string   // file:line of its entry
}

// An Edit replaces a text that occurs exactly once in a file.
type Edit struct{ File, Old, New string }

// readAll reads all lists in the order of their names.
func readAll(lists fs.FS) (all []Mutant, err error) {
	names, err := fs.Glob(lists, "*.txt")
	if err != nil {
		return nil, err
	}
	seen := make(map[string]string)
	for _, name := range names {
		f, err := lists.Open(name)
		if err != nil {
			return nil, err
		}
		some, err := read(f, name)
		f.Close()
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			if first, ok := seen[m.Name]; ok {
				return nil, fmt.Errorf("%s: mutant %s: the name is taken by %s", m.Place, m.Name, first)
			}
			seen[m.Name] = m.Place
		}
		all = append(all, some...)
	}
	return all, nil
}

// A reader reads one list.
type reader struct {
	area, file string
	line       int
	m          *Mutant // the current entry
	text       *string // the current text; nil outside of a text
	all        []Mutant
}

func read(from io.Reader, file string) ([]Mutant, error) {
	r := reader{area: strings.TrimSuffix(path.Base(file), ".txt"), file: file}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		r.line++
		if err := r.next(lines.Text()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, r.line, err)
		}
	}
	if r.m != nil {
		return nil, fmt.Errorf("%s: mutant %s has no end", r.m.Place, r.m.Name)
	}
	return r.all, lines.Err()
}

func (r *reader) next(line string) error {
	if text, ok := strings.CutPrefix(line, "\t"); ok || r.text != nil && line == "" {
		if r.text == nil {
			return errors.New("a text must stand beneath old or new")
		}
		*r.text += text + "\n"
		return nil
	}
	if strings.HasPrefix(line, " ") {
		return errors.New("a text has a tab before each line")
	}
	r.text = nil
	word, value, _ := strings.Cut(line, " ")
	value = strings.TrimSpace(value)
	switch {
	case word == "" || strings.HasPrefix(word, "#"):
		return nil
	case word == "mutant":
		return r.begin(value)
	case r.m == nil:
		return fmt.Errorf("%q: an entry begins with mutant and its name", word)
	case word == "end":
		return r.end()
	}
	return r.field(word, value)
}

func (r *reader) begin(name string) error {
	if r.m != nil {
		return fmt.Errorf("mutant %s has no end", r.m.Name)
	}
	if name == "" || strings.ContainsAny(name, " /") {
		return fmt.Errorf("mutant %q: the name is one word", name)
	}
	r.m = &Mutant{Name: r.area + "/" + name, Place: fmt.Sprintf("%s:%d", r.file, r.line)}
	return nil
}

func (r *reader) field(word, value string) error {
	last := len(r.m.Edits) - 1
	switch word {
	case "why":
		r.m.Why = value
	case "test":
		r.m.Test = strings.Fields(value)
	case "run":
		r.m.Run = value
	case "file":
		r.m.Edits = append(r.m.Edits, Edit{File: value})
	case "old", "new":
		if last < 0 {
			return fmt.Errorf("%s: file must stand before it", word)
		}
		r.text = &r.m.Edits[last].Old
		if word == "new" {
			r.text = &r.m.Edits[last].New
		}
	default:
		return fmt.Errorf("%q: want mutant, why, file, test, run, old, new or end", word)
	}
	return nil
}

// end checks the entry and adds it to the list.
func (r *reader) end() error {
	m := r.m
	r.m = nil
	if m.Why == "" || len(m.Test) == 0 || len(m.Edits) == 0 {
		return fmt.Errorf("mutant %s: must have why, test, file and old", m.Name)
	}
	for _, e := range m.Edits {
		if strings.TrimSpace(e.Old) == "" || e.Old == e.New {
			return fmt.Errorf("mutant %s: %s: old must be a text, and new another", m.Name, e.File)
		}
	}
	r.all = append(r.all, *m)
	return nil
}
