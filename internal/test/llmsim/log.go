package llmsim

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// An Outcome is how an attempt ended.
type Outcome string

const (
	Going     Outcome = "going"     // it has not ended
	Answered  Outcome = "answered"  // all of the answer was written
	Throttled Outcome = "throttled" // refused, by a limit or by a fault
	Rejected  Outcome = "rejected"  // refused: something about it was wrong
	Failed    Outcome = "failed"    // by a fault
	Left      Outcome = "left"      // the caller went away before the end
)

// An Attempt is one request, as the provider saw it.
type Attempt struct {
	N         int           // counted from 1, since New
	At        time.Duration // when it arrived; all instants are since New or Reset
	GrantedAt time.Duration // when it was taken off the limits, if it was
	First     time.Duration // when the first piece of the answer was written; 0 if none was
	End       time.Duration // when it ended; 0 while it has not
	Family    llm.Family
	Operation string // as llm.Route calls it, and "models"; "" if the path is not known
	Model     string
	Key       string // its name
	Stream    bool
	Outcome   Outcome
	Status    int    // of HTTP; 0 if none was sent
	Reason    string // why it was refused
	Fault     Kind   // that befell it
	Granted   bool   // it was taken off the limits
	Reserved  int64  // tokens taken at the start
	Input     int64  // tokens used, whatever the answer says
	Output    int64
	Left      bool   // the caller went away before the end
	Retry     string // what the SDK says of the attempts before it
	Question  string // if Config.KeepBodies
	Body      []byte // if Config.KeepBodies
}

// MarshalJSON gives instants in milliseconds, and no bodies.
func (a Attempt) MarshalJSON() ([]byte, error) {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return json.Marshal(map[string]any{
		"n": a.N, "at_ms": ms(a.At), "granted_at_ms": ms(a.GrantedAt), "first_ms": ms(a.First), "end_ms": ms(a.End),
		"family": a.Family, "operation": a.Operation, "model": a.Model, "key": a.Key, "stream": a.Stream,
		"outcome": a.Outcome, "status": a.Status, "reason": a.Reason, "fault": a.Fault,
		"granted": a.Granted, "reserved": a.Reserved, "input": a.Input, "output": a.Output,
		"left": a.Left, "retry": a.Retry, "question": a.Question,
	})
}

// keyName is how a key is called that has no name: by a few digits of its hash.
func keyName(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("key-%x", sum[:4])
}

func (p *Provider) keyName(key string) string {
	return cmp.Or(p.c.Keys[key].Name, keyName(key))
}

// enter adds the call to the record.
func (p *Provider) enter(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	c.id, c.at.N, c.at.At = p.n, p.n, c.begun-p.begun
	if len(p.log) >= p.c.Keep {
		p.log = slices.Delete(p.log, 0, len(p.log)-p.c.Keep/2)
	}
	p.log = append(p.log, c.at)
}

// end closes the record of a call and settles what it was granted.
func (p *Provider) end(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	c.at.End = max(now-p.begun, 1)
	if c.grant != nil {
		c.at.Input = c.input
		c.grant.settle(now, p.clock.Wall(now), c.input)
	}
}

// wrote counts n tokens of output that were written now.
func (p *Provider) wrote(c *call, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	c.at.Input = c.input
	c.at.Output += n
	if c.at.First == 0 {
		c.at.First = max(now-p.begun, 1)
	}
	c.grant.wrote(now, p.clock.Wall(now), n)
}

func (p *Provider) status(c *call, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.at.Status = status
}

func (p *Provider) done(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.at.Outcome = Answered
}

func (p *Provider) opened(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open += n
}

// violate records what was wrong with a request.
func (p *Provider) violate(c *call, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.violations) < 1000 {
		p.violations = append(p.violations, fmt.Sprintf("attempt %d, %s %s: ", c.at.N, c.family, c.op)+fmt.Sprintf(format, args...))
	}
}

// Log is every attempt since New or Reset, in the order of arrival; those of long ago
// are forgotten, see Config.Keep.
func (p *Provider) Log() []Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Attempt, len(p.log))
	for i, a := range p.log {
		all[i] = *a
	}
	return all
}

// Violations says what was wrong with requests, without what was in them.
func (p *Provider) Violations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.violations)
}

// Open is how many streams are being written now.
func (p *Provider) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// Count is how many attempts there were of which is holds; nil means of all.
func (p *Provider) Count(is func(Attempt) bool) (n int) {
	for _, a := range p.Log() {
		if is == nil || is(a) {
			n++
		}
	}
	return n
}

// Refused is how many attempts were throttled.
func (p *Provider) Refused() int {
	return p.Count(func(a Attempt) bool { return a.Outcome == Throttled })
}

// A Load is the most that was granted in a window of time. The maxima may come from
// different windows.
type Load struct {
	Requests int64
	Reserved int64 // tokens, as they were reserved
	Used     int64 // tokens, as they were used in the end; counted when they were granted
}

// Busiest is the most that was granted in any window [t, t+w) to attempts of which is
// holds; nil means to all.
func (p *Provider) Busiest(w time.Duration, is func(Attempt) bool) (most Load) {
	all := slices.DeleteFunc(p.Log(), func(a Attempt) bool { return !a.Granted || is != nil && !is(a) })
	slices.SortStableFunc(all, func(a, b Attempt) int { return cmp.Compare(a.GrantedAt, b.GrantedAt) })
	var in Load
	first := 0
	for _, a := range all {
		for ; a.GrantedAt-all[first].GrantedAt >= w; first++ {
			in.add(all[first], -1)
		}
		in.add(a, +1)
		most = Load{Requests: max(most.Requests, in.Requests), Reserved: max(most.Reserved, in.Reserved), Used: max(most.Used, in.Used)}
	}
	return most
}

func (l *Load) add(a Attempt, sign int64) {
	l.Requests += sign
	l.Reserved += sign * a.Reserved
	l.Used += sign * (a.Input + a.Output)
}
