package llmsim

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// A Kind is the kind of a fault.
type Kind string

const (
	// Faults instead of a response. They take nothing from the limits.
	Throttle Kind = "throttle" // refused for its rate: Hint, NoHint, Day, Tokens
	Broke    Kind = "broke"    // the account has no credit: insufficient_quota
	Error    Kind = "error"    // Status; 0 means 500
	Redirect Kind = "redirect" // 307 to Location
	Down     Kind = "down"     // connections are refused; see Provider.Fault

	// Faults of the response to an admitted call. Where applies to the first three.
	Hang  Kind = "hang"  // the response stops
	Reset Kind = "reset" // the connection is reset
	Drop  Kind = "drop"  // the connection is closed in the middle of the response

	EmptyBody  Kind = "empty_body"  // 200 with an empty body
	BadJSON    Kind = "bad_json"    // 200 with half of a response, or half of an event in a stream
	NoUsage    Kind = "no_usage"    // the response lacks the usage
	WrongUsage Kind = "wrong_usage" // the usage is multiplied by Factor; 0 means absurd numbers
	Slow       Kind = "slow"        // the header is late by Delay

	// Faults of streams only.
	Cut         Kind = "cut"          // a clean end after Events pieces, without the final events
	StreamError Kind = "stream_error" // an error after Events pieces, with Status; 0 means overloaded
	NeverEnding Kind = "never_ending" // continues until the caller disconnects
)

// Where is the time of a fault.
type Where string

const (
	BeforeHeaders Where = "before_headers" // the default
	AfterHeaders  Where = "after_headers"  // 200 and no content; without a stream, half of the body
	AfterContent  Where = "after_content"  // of a stream: after Events pieces, 0 means 1
)

// A Fault applies to some of the calls for some time.
type Fault struct {
	Kind   Kind
	Family llm.Family // "" means all
	Model  string     // "" means all
	Key    string     // by name; "" means all

	// The number of times and the duration of the fault. 0 and 0 mean once. A negative Times means until Clear.
	Times int
	For   time.Duration

	Where    Where
	Events   int           // number of preceding pieces
	Status   int           // of HTTP
	Hint     time.Duration // of Throttle; 0 means 1 s
	NoHint   bool          // of Throttle: without a time to retry
	Day      bool          // of Throttle: a daily quota
	Tokens   bool          // of Throttle: a limit of tokens instead of requests
	Factor   float64       // of WrongUsage
	Delay    time.Duration // of Slow
	Location string        // of Redirect
}

// kinds are all kinds.
var kinds = []Kind{Throttle, Broke, Error, Redirect, Down, Hang, Reset, Drop, EmptyBody, BadJSON, NoUsage, WrongUsage, Slow, Cut, StreamError, NeverEnding}

// A fault is a current Fault.
type fault struct {
	Fault
	left  int // remaining times
	until time.Duration
}

// Fault adds a fault after the current ones. A call has at most one fault instead of its response and at most one in it: the
// oldest that matches. Down closes the listeners of Start and all connections for the time in For, which must not be 0. Calls
// on other ways are reset. Fault panics if f is invalid.
func (p *Provider) Fault(f Fault) {
	if err := f.check(); err != nil {
		panic(err)
	}
	if f.Where == "" {
		f.Where = BeforeHeaders
	}
	x := &fault{Fault: f, left: f.Times}
	if f.Times == 0 && f.For == 0 {
		x.left = 1
	}
	p.mu.Lock()
	if f.For > 0 {
		x.until = p.clock.Now() + f.For
	}
	p.faults = append(p.faults, x)
	servers := slices.Clone(p.servers)
	p.mu.Unlock()
	if f.Kind == Down {
		for _, s := range servers {
			s.DownFor(f.For)
		}
	}
}

// check returns an error if the fault is invalid.
func (f Fault) check() error {
	switch {
	case !slices.Contains(kinds, f.Kind):
		return fmt.Errorf("fault of kind %q: there are %v", f.Kind, kinds)
	case f.Kind == Down && f.For <= 0:
		return fmt.Errorf("fault %q: say for how long", f.Kind)
	case !slices.Contains([]Where{"", BeforeHeaders, AfterHeaders, AfterContent}, f.Where):
		return fmt.Errorf("fault %q: where %q: there are %s, %s and %s", f.Kind, f.Where, BeforeHeaders, AfterHeaders, AfterContent)
	case f.Status != 0 && (f.Status < 300 || f.Status > 599):
		return fmt.Errorf("fault %q: status %d: must be one of 300 to 599", f.Kind, f.Status)
	}
	return nil
}

// Clear removes all faults and ends Down early.
func (p *Provider) Clear() {
	p.mu.Lock()
	p.faults = nil
	servers := slices.Clone(p.servers)
	p.mu.Unlock()
	for _, s := range servers {
		s.restore()
	}
}

// early reports whether the fault replaces the response.
func (f *fault) early() bool {
	return slices.Contains([]Kind{Throttle, Broke, Error, Redirect, Down}, f.Kind)
}

// streams reports whether the fault applies only to streams.
func (f *fault) streams() bool {
	return slices.Contains([]Kind{Cut, StreamError, NeverEnding}, f.Kind) || f.Where == AfterContent
}

func (f *fault) fits(c *call, name string) bool {
	return (f.Family == "" || f.Family == c.family) && (f.Model == "" || f.Model == c.model) &&
		(f.Key == "" || f.Key == name) && (c.stream || !f.streams())
}

// take returns the fault of a call and decrements its remaining times.
func (p *Provider) take(c *call, granted bool) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.faults = slices.DeleteFunc(p.faults, func(f *fault) bool { return f.over(now) })
	for _, f := range p.faults {
		if f.early() == granted || !f.fits(c, p.keyName(c.key)) {
			continue
		}
		f.left--
		c.at.Fault = f.Kind
		took := f.Fault
		return &took
	}
	return nil
}

// over reports whether a fault has ended.
func (f *fault) over(now time.Duration) bool {
	return f.Times > 0 && f.left <= 0 || f.until > 0 && now >= f.until || f.Times == 0 && f.For == 0 && f.left <= 0
}

func (f *Fault) kind() Kind {
	if f == nil {
		return ""
	}
	return f.Kind
}

func (f *Fault) is(k Kind) bool { return f.kind() == k }

func (f *Fault) status(otherwise int) int {
	if f.Status != 0 {
		return f.Status
	}
	return otherwise
}

// at reports whether the connection fails at a place.
func (f *Fault) at(w Where) bool {
	return (f.is(Hang) || f.is(Reset) || f.is(Drop)) && f.Where == w
}

// due reports whether a stream fails after i pieces.
func (f *Fault) due(i int) bool {
	switch f.kind() {
	case StreamError, Cut, BadJSON:
		return i >= f.Events
	}
	return f.at(AfterContent) && i >= max(f.Events, 1)
}

// before applies a fault that replaces the response. It reports whether there was one.
func (p *Provider) before(w http.ResponseWriter, c *call, d dialect) bool {
	f := p.take(c, false)
	if f == nil {
		return false
	}
	switch f.Kind {
	case Throttle:
		p.fail(w, c, d, f.throttled(c, p.clock.Now()), Throttled)
	case Broke:
		p.fail(w, c, d, &failure{code: broke, status: 429}, Throttled)
	case Redirect:
		w.Header().Set("Location", f.Location)
		p.fail(w, c, d, &failure{code: broken, status: http.StatusTemporaryRedirect, message: "moved"}, Failed)
	case Down:
		p.ended(c, Failed)
		reset(w)
	default:
		p.fail(w, c, d, &failure{code: broken, status: f.status(500)}, Failed)
	}
	return true
}

func (p *Provider) ended(c *call, o Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.at.Outcome = o
}

func (f *Fault) hint() time.Duration {
	if f.Hint > 0 {
		return f.Hint
	}
	return time.Second
}

// throttled returns a refusal by a nonexistent limit.
func (f *Fault) throttled(c *call, now time.Duration) *failure {
	r := Rate{N: 60, Per: f.hint()}
	h := &hit{unit: "requests", day: f.Day, limit: 60, used: 60, requested: 1, per: time.Minute, wait: f.hint()}
	m := newMeter(Limits{Requests: r}, now)
	if f.Tokens {
		h.unit, h.limit, h.used, h.requested = "tokens", 100_000, 100_000, c.input
		r.N = h.limit
		m = newMeter(Limits{Tokens: r}, now)
	}
	m.empty()
	return &failure{code: throttled, status: 429, hit: h, hint: f.hint(), noHint: f.NoHint, m: m}
}

// empty removes all units from a meter's buckets.
func (m *meter) empty() {
	for _, g := range []*gauge{m.requests, m.tokens} {
		if g != nil {
			g.level = 0
		}
	}
}

// reset resets a connection: with RST over TCP, with RST_STREAM in HTTP/2.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // otherwise it is closed normally
	}
	_ = conn.Close()
}
