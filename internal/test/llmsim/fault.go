package llmsim

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// A Kind is what goes wrong.
type Kind string

const (
	// In place of an answer; nothing is taken off the limits.
	Throttle Kind = "throttle" // refused for its rate: Hint, NoHint, Day, Tokens
	Broke    Kind = "broke"    // the account has no money left: insufficient_quota
	Error    Kind = "error"    // Status; 0 means 500
	Redirect Kind = "redirect" // 307 to Location
	Down     Kind = "down"     // connections are refused; see Provider.Fault

	// To an answer that was granted. Where says when, for the first three.
	Hang  Kind = "hang"  // nothing more comes
	Reset Kind = "reset" // the connection is reset
	Drop  Kind = "drop"  // the connection is closed in the middle of the answer

	EmptyBody  Kind = "empty_body"  // 200 and nothing
	BadJSON    Kind = "bad_json"    // 200 and half of an answer; in a stream half of an event
	NoUsage    Kind = "no_usage"    // the answer does not say what it used
	WrongUsage Kind = "wrong_usage" // it says Factor times as much; 0 means absurd numbers
	Slow       Kind = "slow"        // Delay more until the header

	// To streams alone.
	Cut         Kind = "cut"          // a clean end after Events pieces, without what ends a good stream
	StreamError Kind = "stream_error" // an error after Events pieces; Status says which, 0 means overloaded
	NeverEnding Kind = "never_ending" // it goes on until the caller leaves
)

// Where says when a fault strikes.
type Where string

const (
	BeforeHeaders Where = "before_headers" // the default
	AfterHeaders  Where = "after_headers"  // 200 and no content; if not streamed, half of the body
	AfterContent  Where = "after_content"  // of a stream: after Events pieces, 0 means 1
)

// A Fault is something that goes wrong, for some of the calls, for some time.
type Fault struct {
	Kind   Kind
	Family llm.Family // "" means all
	Model  string     // "" means all
	Key    string     // by name; "" means all

	// It strikes so many times, and for so long. 0 and 0 mean once; a negative Times
	// means until Clear.
	Times int
	For   time.Duration

	Where    Where
	Events   int           // pieces of the answer that come before
	Status   int           // of HTTP
	Hint     time.Duration // of Throttle; 0 means 1 s
	NoHint   bool          // of Throttle: not said when to come back
	Day      bool          // of Throttle: a daily quota
	Tokens   bool          // of Throttle: of tokens, not of requests
	Factor   float64       // of WrongUsage
	Delay    time.Duration // of Slow
	Location string        // of Redirect
}

// kinds are all there are.
var kinds = []Kind{Throttle, Broke, Error, Redirect, Down, Hang, Reset, Drop, EmptyBody, BadJSON, NoUsage, WrongUsage, Slow, Cut, StreamError, NeverEnding}

// A fault is a Fault that is in force.
type fault struct {
	Fault
	left  int // times
	until time.Duration
}

// Fault puts a fault in force, behind those that are. A call has at most one fault in
// place of its answer and at most one in it, the oldest that fits. Down closes the
// listeners of Start for as long as For says, which must not be 0, and all connections
// with them; calls by other ways are reset. It panics if the fault is not one.
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

// check says what about a fault cannot be.
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

// Clear takes all faults away, and ends Down before its time.
func (p *Provider) Clear() {
	p.mu.Lock()
	p.faults = nil
	servers := slices.Clone(p.servers)
	p.mu.Unlock()
	for _, s := range servers {
		s.restore()
	}
}

// early tells faults that come in place of an answer.
func (f *fault) early() bool {
	return slices.Contains([]Kind{Throttle, Broke, Error, Redirect, Down}, f.Kind)
}

// streams tells faults that only streams have.
func (f *fault) streams() bool {
	return slices.Contains([]Kind{Cut, StreamError, NeverEnding}, f.Kind) || f.Where == AfterContent
}

func (f *fault) fits(c *call, name string) bool {
	return (f.Family == "" || f.Family == c.family) && (f.Model == "" || f.Model == c.model) &&
		(f.Key == "" || f.Key == name) && (c.stream || !f.streams())
}

// take is the fault that befalls a call, which is then used up once more.
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

// over reports that a fault is spent.
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

// at reports that the connection fails at a place.
func (f *Fault) at(w Where) bool {
	return (f.is(Hang) || f.is(Reset) || f.is(Drop)) && f.Where == w
}

// due reports that a stream breaks when i pieces have been written.
func (f *Fault) due(i int) bool {
	switch f.kind() {
	case StreamError, Cut, BadJSON:
		return i >= f.Events
	}
	return f.at(AfterContent) && i >= max(f.Events, 1)
}

// before lets faults strike that come in place of an answer. It reports whether one did.
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

// throttled is a refusal by a limit that there is not.
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

// empty leaves nothing of a meter's buckets.
func (m *meter) empty() {
	for _, g := range []*gauge{m.requests, m.tokens} {
		if g != nil {
			g.level = 0
		}
	}
}

// reset ends a connection the hard way: with RST over TCP, with RST_STREAM in HTTP/2.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // at worst it is closed the soft way
	}
	_ = conn.Close()
}
