package lambdax

import (
	"slices"
	"sync"
	"time"
)

// latest is of how many messages it is remembered how long they took.
const latest = 100

// lately remembers how long the latest messages took. The zero value remembers none.
type lately struct {
	mu   sync.Mutex
	took [latest]time.Duration
	n    int
}

func (l *lately) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took[l.n%latest] = d
	l.n++
}

// most is how long 99 of 100 messages take at most; the longest while there are less than 100, and 0 while
// there is none.
func (l *lately) most() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.took
	known := all[:min(l.n, latest)]
	slices.Sort(known)
	switch {
	case len(known) == 0:
		return 0
	case len(known) == latest:
		return known[latest-2]
	}
	return known[len(known)-1]
}
