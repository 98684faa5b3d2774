package lambdax

import (
	"slices"
	"sync"
	"time"
)

// latest is the number of messages whose durations are remembered.
const latest = 100

// lately remembers the durations of the latest messages. The zero value is empty.
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

// most returns the 99th percentile of the durations: the maximum while there are less than 100, and 0 while there are none.
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
