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

// An Outcome is the result of an attempt.
type Outcome string

const (
	Going     Outcome = "going"     // not ended
	Answered  Outcome = "answered"  // the complete answer was written
	Throttled Outcome = "throttled" // refused by a limit or a fault
	Rejected  Outcome = "rejected"  // refused as invalid
	Failed    Outcome = "failed"    // by a fault
	Left      Outcome = "left"      // the caller disconnected before the end
)

// An Attempt is one request from the provider's view.
type Attempt struct {
	N         int           // counted from 1, since New
	At        time.Duration // arrival; all times are since New or Reset
	GrantedAt time.Duration // time at which it took units, if it did
	First     time.Duration // time of the first piece of the answer; 0 without one
	End       time.Duration // time of the end; 0 before it
	Family    llm.Family
	Operation string // as in llm.Route, or "models"; "" for an unknown path
	Model     string
	Key       string // name of the key
	Stream    bool
	Outcome   Outcome
	Status    int    // of HTTP; 0 if none was sent
	Reason    string // reason of a refusal
	Fault     Kind   // its fault
	Granted   bool   // it took units
	Reserved  int64  // tokens taken at the start
	Input     int64  // used tokens, regardless of the response
	Output    int64
	Left      bool   // the caller disconnected before the end
	Retry     string // the SDK's information on earlier attempts
	Question  string // if Config.KeepBodies
	Body      []byte // if Config.KeepBodies
}

// MarshalJSON writes times in milliseconds and omits bodies.
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

// keyName returns a name for a key without one: some digits of its hash.
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

// end completes the record of a call and settles its grant.
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

// wrote counts n written output tokens.
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

// violate records an error in a request.
func (p *Provider) violate(c *call, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.violations) < 1000 {
		p.violations = append(p.violations, fmt.Sprintf("attempt %d, %s %s: ", c.at.N, c.family, c.op)+fmt.Sprintf(format, args...))
	}
}

// Log returns the attempts since New or Reset in order of arrival. Old ones are removed, see Config.Keep.
func (p *Provider) Log() []Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Attempt, len(p.log))
	for i, a := range p.log {
		all[i] = *a
	}
	return all
}

// Violations returns errors in requests, without their content.
func (p *Provider) Violations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.violations)
}

// Open returns the number of open streams.
func (p *Provider) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// Count returns the number of attempts that match. nil matches all.
func (p *Provider) Count(is func(Attempt) bool) (n int) {
	for _, a := range p.Log() {
		if is == nil || is(a) {
			n++
		}
	}
	return n
}

// Refused returns the number of throttled attempts.
func (p *Provider) Refused() int {
	return p.Count(func(a Attempt) bool { return a.Outcome == Throttled })
}

// A Load is the maximum use in a window of time. The maxima may be in different windows.
type Load struct {
	Requests int64
	Reserved int64 // reserved tokens
	Used     int64 // used tokens, counted at the admission
}

// Busiest returns the maximum use in any window [t, t+w) by attempts that match. nil matches all.
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
