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

// usual is the least confidence at which a Book answers unless it is told
// another. On the questions of testdata it is where precision is at least 95% and
// recall at least 80%: a little more than half of what is asked, and of the
// question that is matched, must agree.
const usual = 0.55

// maxQuestion is how many bytes of a question are considered.
const maxQuestion = 4 << 10

// A Book is answers written beforehand. The zero Book is empty, and finds
// nothing. It is safe for concurrent use, and Load takes effect at once.
type Book struct {
	// Threshold is the least confidence that is a match; 0 means 0.55, and above 1
	// nothing matches. It must not change once the book is in use.
	Threshold float64

	library atomic.Pointer[library]

	mu   sync.Mutex // one Load at a time
	seen stamp
}

// A stamp tells a version of a file from another.
type stamp struct {
	file     string
	modified time.Time
	size     int64
}

// A library is the contents of one file. It does not change.
type library struct {
	entries []entry
	shelves []*shelf
}

// Open is a Book with the answers of a file.
func Open(file string) (*Book, error) {
	b := new(Book)
	if err := b.Load(file); err != nil {
		return nil, err
	}
	return b, nil
}

// Load replaces the answers by those of a file. If anything is wrong with it,
// nothing changes and the error is of type Errors, which has every mistake, or
// says why the file could not be read.
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
	b.seen = stamp{file, info.ModTime(), info.Size()} // even if it is bad: it need not be read again
	data, err := io.ReadAll(io.LimitReader(f, int64(bounds.Bytes)+1))
	if err != nil {
		return fmt.Errorf("static answers: %w", err)
	}
	return b.Parse(file, data)
}

// Parse is Load for a file in memory; name is what complaints call it.
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

// Refresh loads the file again if its size or time of change is not what it was
// when it was last looked at, and says whether it did. A file that is not there
// is an error and changes nothing.
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

// Len is how many entries the book has.
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

// borrowed are the keywords in Latin letters that belong to other languages, for one that is
// written otherwise: "refund" stands in a Japanese question as it is.
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

// where is the shelves that a question may be found on: those of the languages
// given that are written like it, or all that are.
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
