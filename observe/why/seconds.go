package why

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
)

const (
	// Remembered is how long it is known what went on in a second.
	Remembered = time.Hour
	// mostLines bounds what is known of all seconds: about 10 MiB, when much is refused. The oldest goes first.
	mostLines = 1 << 17
)

// A Line is how many calls an upstream decided in a while, in one way.
type Line struct {
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Upstream  string    `json:"upstream"`
	Operation string    `json:"operation,omitempty"` // "" for what was allowed, of all operations
	Limit     string    `json:"limit,omitempty"`     // that made them wait, or refused them
	Decision  string    `json:"decision"`            // "allowed", "waited" or the reason of a refusal
	N         uint64    `json:"n"`
	Rule      string    `json:"rule,omitempty"` // of the limit as it is now: "3000/s burst 300"
	By        string    `json:"by,omitempty"`   // what has a limit of its own each: "tenant"
	At        string    `json:"at,omitempty"`   // where the configuration has the limit
}

// Seconds know how many calls each upstream decided of late, second by second, where some waited or were refused. They are for the
// calls of which no more is known. The zero Seconds are ready.
type Seconds struct {
	mu    sync.Mutex
	of    map[string]*counted // by upstream
	first time.Time           // before it nobody counted
	last  time.Time           // of the latest Sample
	lines []Line              // a ring once it is full; the oldest first, from next on
	next  int
}

// counted is what an upstream has counted.
type counted struct {
	by            []*weir.Counts // one for each upstream that has had the name
	allowed, held uint64
	last          map[way]uint64 // of what was held
}

// A way is how calls were decided.
type way struct{ operation, limit, decision string }

// Counts is for weir.Events: an upstream was made.
func (s *Seconds) Counts(c *weir.Counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string]*counted)
		s.first = time.Now()
		s.last = s.first
	}
	one := s.of[c.Upstream()]
	if one == nil {
		one = &counted{last: make(map[way]uint64)}
		s.of[c.Upstream()] = one
	}
	one.by = append(one.by, c)
}

// Sample notes what has been decided since it was called last; it is to be called each second. Upstreams that are not there any more
// are not counted any more.
func (s *Seconds) Sample(now time.Time, there func(upstream string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.last
	if !now.After(from) {
		return // the clock went back: what is decided meanwhile counts from its old hand on
	}
	s.last = now
	for name, one := range s.of {
		if !there(name) {
			delete(s.of, name)
			continue
		}
		for _, l := range one.since() {
			l.From, l.To, l.Upstream = from, now, name
			s.keep(l)
		}
	}
}

// since is what has been decided since the last time, if some calls waited or were refused: a second in which all went at once has
// nothing to tell, and costs next to nothing.
func (c *counted) since() (lines []Line) {
	allowed, held := uint64(0), uint64(0)
	for _, one := range c.by {
		a, h := one.Sum()
		allowed, held = allowed+a, held+h
	}
	went := allowed - c.allowed
	c.allowed = allowed
	if held == c.held {
		return nil
	}
	c.held = held
	if went > 0 {
		lines = append(lines, Line{Decision: weir.DecidedAllowed, N: went})
	}
	now := make(map[way]uint64, len(c.last))
	for _, one := range c.by {
		for n := range one.Decided() {
			if n.Limit != "" || n.Word != weir.DecidedAllowed {
				now[way{n.Operation, n.Limit, n.Word}] += n.N
			}
		}
	}
	for w, n := range now {
		if n -= c.last[w]; n > 0 {
			lines = append(lines, Line{Operation: w.operation, Limit: w.limit, Decision: w.decision, N: n})
		}
	}
	c.last = now
	return lines
}

func (s *Seconds) keep(l Line) {
	if len(s.lines) < mostLines {
		s.lines = append(s.lines, l)
		return
	}
	s.lines[s.next] = l
	s.next = (s.next + 1) % mostLines
}

// In is what was decided in the second that begins at an instant, as far as it was when Sample was called last. ok reports whether anything
// could be known of it: it is not to come, and not too long ago.
func (s *Seconds) In(second, now time.Time) (lines []Line, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := second.Add(time.Second)
	if !s.last.After(second) || end.Before(s.first) || now.Sub(second) > Remembered || len(s.lines) == mostLines && second.Before(s.lines[s.next].From) {
		return nil, false
	}
	for _, l := range s.lines {
		if l.From.Before(end) && l.To.After(second) {
			lines = append(lines, l)
		}
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(a.From.Compare(b.From), strings.Compare(a.Upstream, b.Upstream), cmp.Compare(b.N, a.N), strings.Compare(a.Operation+a.Limit+a.Decision, b.Operation+b.Limit+b.Decision))
	})
	return lines, true
}
