package weir

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A wordList maps strings to numbers, so that a Record needs no strings: names of limits and codes of upstreams. It
// never forgets a string. When it has the maximum, further strings become otherWord. Number 0 is "".
type wordList struct {
	most   int
	adding sync.Mutex
	known  atomic.Pointer[wordNumbers]
}

// wordNumbers is immutable.
type wordNumbers struct {
	all    []string
	number map[string]uint16
}

// mostWords bounds how many strings the responses of upstreams can make this process keep, and longestWord their
// length.
const (
	mostWords   = 4096
	longestWord = 128
	otherWord   = "other"
)

var words = newWordList(mostWords)

func newWordList(most int) *wordList {
	l := &wordList{most: most}
	l.known.Store(&wordNumbers{all: []string{"", otherWord}, number: map[string]uint16{"": 0, otherWord: 1}})
	return l
}

// number returns the number of a string, or of otherWord if there are too many.
func (l *wordList) number(word string) uint16 {
	word = word[:min(len(word), longestWord)]
	if n, ok := l.known.Load().number[word]; ok {
		return n
	}
	return l.add(word)
}

func (l *wordList) add(word string) uint16 {
	l.adding.Lock()
	defer l.adding.Unlock()
	old := l.known.Load()
	n, ok := old.number[word]
	if ok {
		return n
	}
	if len(old.all) >= l.most {
		return 1
	}
	next := &wordNumbers{all: append(old.all, word), number: maps.Clone(old.number)}
	n = uint16(len(old.all))
	next.number[word] = n
	l.known.Store(next)
	return n
}

// word returns the string of a number.
func (l *wordList) word(n uint16) string { return l.known.Load().all[n] }
