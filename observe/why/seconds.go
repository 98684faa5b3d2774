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
	// Remembered is how long the decisions of a second are remembered.
	Remembered = time.Hour
	// mostLines is the maximum number of remembered lines: about 10 MiB when many calls are refused. The oldest are dropped
	// first.
	mostLines = 1 << 17
)

// A Line is the number of calls of an upstream that were decided in one way in a period.
type Line struct {
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Upstream  string    `json:"upstream"`
	Operation string    `json:"operation,omitempty"` // "" for allowed calls, of all operations
	Limit     string    `json:"limit,omitempty"`     // the limit that caused the wait or refused
	Decision  string    `json:"decision"`            // "allowed", "waited" or the reason of a refusal
	N         uint64    `json:"n"`
	Rule      string    `json:"rule,omitempty"` // the current rule of the limit: "3000/s burst 300"
	By        string    `json:"by,omitempty"`   // the scope whose keys have separate limits: "tenant"
	At        string    `json:"at,omitempty"`   // the position of the limit in the configuration
}

// Seconds counts the decisions of each upstream, for every second in which calls waited or were refused. It answers for calls
// without an individual record. The zero Seconds is ready to use. It is safe for concurrent use.
type Seconds struct {
	mu    sync.Mutex
	of    map[string]*counted // by upstream
	first time.Time           // beginning of the counts
	last  time.Time           // of the latest Sample
	lines []Line              // a ring once it is full; the oldest is at next
	next  int
}

type counted struct {
	by            []*weir.Counts // one for each upstream that has had the name
	allowed, held uint64
	last          map[way]uint64 // the previous counts of waits and refusals
}

// A way is a kind of decision.
type way struct{ operation, limit, decision string }

// Counts is for weir.Events. It registers a new upstream.
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

// Sample records the decisions since its previous call. Call it each second. It forgets upstreams that no longer exist.
func (s *Seconds) Sample(now time.Time, there func(upstream string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.last
	if !now.After(from) {
		return // the clock was set back: the decisions until it catches up count from the old time
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

// since returns the decisions since the previous call if calls waited or were refused. A second in which every call proceeded
// immediately has no lines and costs almost nothing.
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

// In returns the decisions in the second that begins at second, as of the latest Sample. ok is false if the second is unknown,
// because it is in the future or too long ago.
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
