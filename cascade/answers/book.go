package answers

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// usual is the default threshold. With it, the questions of testdata have at least 95% precision and 80% recall. A
// little more than half of the question and of the matched text must agree.
const usual = 0.55

const maxQuestion = 4 << 10 // bytes of a question that are used

// A Book has static answers. The zero Book is empty. It is safe for concurrent use. Load takes effect immediately.
type Book struct {
	// Threshold is the minimum confidence of a match. 0 means 0.55. Above 1 there are no matches. It must not be changed
	// while the book is in use.
	Threshold float64

	library atomic.Pointer[library]

	mu   sync.Mutex // one Load at a time
	seen stamp
}

// A stamp identifies a version of a file.
type stamp struct {
	file     string
	modified time.Time
	size     int64
}

// A library has the contents of one file. It is immutable.
type library struct {
	entries []entry
	shelves []*shelf
}

// Open returns a Book with the answers of a file.
func Open(file string) (*Book, error) {
	b := new(Book)
	if err := b.Load(file); err != nil {
		return nil, err
	}
	return b, nil
}

// Load replaces the answers with those of a file. If the file is invalid, nothing changes and the error is of type
// Errors with all mistakes. Other errors mean that the file cannot be read.
func (b *Book) Load(file string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.load(file)
}

func (b *Book) load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("static answers: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("static answers: %w", err)
	}
	b.seen = stamp{file, info.ModTime(), info.Size()} // even for an invalid file, which need not be read again
	data, err := io.ReadAll(io.LimitReader(f, int64(bounds.Bytes)+1))
	if err != nil {
		return fmt.Errorf("static answers: %w", err)
	}
	return b.Parse(file, data)
}

// Parse is like Load for data in memory. name is the name in error messages.
func (b *Book) Parse(name string, data []byte) error {
	entries, err := parse(name, data)
	if err != nil {
		return err
	}
	l, err := newLibrary(entries)
	if err != nil {
		return fmt.Errorf("static answers: %s: %w", name, err)
	}
	b.library.Store(l)
	return nil
}

// Refresh loads the file again if its size or modification time has changed, and reports whether it did. If the file is
// missing, it returns an error and changes nothing.
func (b *Book) Refresh() (changed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen.file == "" {
		return false, nil
	}
	info, err := os.Stat(b.seen.file)
	if err != nil {
		return false, fmt.Errorf("static answers: %w", err)
	}
	if info.Size() == b.seen.size && info.ModTime().Equal(b.seen.modified) {
		return false, nil
	}
	return true, b.load(b.seen.file)
}

// Len returns the number of entries.
func (b *Book) Len() int {
	if l := b.library.Load(); l != nil {
		return len(l.entries)
	}
	return 0
}

func newLibrary(entries []entry) (*library, error) {
	l := &library{entries: entries}
	for _, t := range tongues {
		var titles []title
		borrows := t.stem == nil || slices.ContainsFunc(entries, func(e entry) bool { return len(e.titles[t.code]) > 0 })
		for i := range entries {
			titles = append(titles, entries[i].titles[t.code]...)
			if borrows {
				titles = append(titles, entries[i].borrowed(t)...)
			}
		}
		if len(titles) == 0 {
			continue
		}
		l.shelves = append(l.shelves, newShelf(t, titles))
	}
	for i := range entries {
		entries[i].titles, entries[i].node = nil, nil
	}
	return l, nil
}

// borrowed returns an entry's Latin keywords of other languages, for a language with another script. A Japanese
// question, for example, may contain "refund".
func (e *entry) borrowed(t tongue) (titles []title) {
	if t.script == latin {
		return nil
	}
	for _, other := range tongues {
		for _, k := range e.titles[other.code] {
			if other.code != t.code && strings.HasPrefix(k.field, "keywords") && scriptOf(k.text) == latin {
				titles = append(titles, k)
			}
		}
	}
	return titles
}

// where returns the shelves to search: those of the given languages in the question's script, or otherwise all in that
// script.
func (l *library) where(question string, languages []string) []*shelf {
	script := scriptOf(question)
	var written, given []*shelf
	for _, s := range l.shelves {
		if s.tongue.writtenIn(script) {
			written = append(written, s)
			if slices.ContainsFunc(languages, func(tag string) bool { return plainCode(tag) == s.tongue.code }) {
				given = append(given, s)
			}
		}
	}
	if len(given) > 0 {
		return given
	}
	return written
}

func (b *Book) threshold() float64 {
	if b.Threshold == 0 {
		return usual
	}
	return b.Threshold
}
