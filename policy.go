package weir

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/outcome/classify"
	"github.com/seed1158cd35/weir/retry"
)

// A Policy is everything that weir knows of an upstream, as plain data: the same
// value serves a Go program, a configuration file and the status page. The zero
// Policy has no limits, three attempts, a retry budget and a breaker.
type Policy struct {
	Operations []Operation // how HTTP requests are told apart; the first that matches
	Limits     []limit.Limit

	// Undeclared lets operations that are not in Operations keep their names in events
	// and metrics, the first 200 of them. It is for calls whose operations are named by
	// a program: names that a client can choose would make a metric each.
	Undeclared bool

	// Concurrency bounds what is in flight: of each operation that is declared if the
	// bound is learnt, of all together if it is a number. The zero Concurrency is no bound.
	Concurrency Concurrency

	Breaker breaker.Config

	// BreakerScope is the name of the key that breakers are kept by. "" means one for each
	// of Operations and one for all other calls, or one for the upstream if there are no
	// Operations; WholeUpstream means that in any case.
	BreakerScope string

	Retry  retry.Config
	Budget retry.BudgetConfig
	Quota  *retry.QuotaConfig // the retry quota of the AWS SDKs, in place of Budget; nil means Budget

	Timeouts Timeouts
	MaxWait  time.Duration // longest wait for a turn; 0 means 10s, and up to a minute for a slot (see Concurrency); below 0 means none
	AskAgain retry.Config  // has calls that find too few units wait by this schedule where they are, in place of in line: "not-enough-tokens"; no Attempts: in line
	Fair     Fair          // who goes first of those that wait for a limit
	MaxPause time.Duration // longest pause that a hint can cause, quotas apart; 0 means 15m
	Classify classify.Rules
}

// Timeouts bound the parts of a call. 0 means the default, below 0 no bound.
type Timeouts struct {
	Connect time.Duration // to make a connection; 0 means 5s
	TLS     time.Duration // to agree on encryption; 0 means 5s
	Headers time.Duration // from the request's end to the answer's headers; 0 means 5s
	Attempt time.Duration // one attempt, over HTTP until its headers; 0 means 10s
	Call    time.Duration // all attempts and the waits between them, over HTTP until the headers; 0 means 60s

	// Bodies over HTTP, of requests and of answers; see httpx.ErrBodyStalled.
	Idle time.Duration // longest that one may bring nothing; 0 means 30s
	Body time.Duration // longest that one may take; 0 means any time

	// Bodies of requests that come from elsewhere, and not from memory.
	UploadIdle time.Duration // longest that one may bring nothing; 0 means Idle
	UploadRate int64         // bytes a second that must come, on the average of UploadOver; 0 means any
	UploadOver time.Duration // 0 means DefaultUploadOver
}

// DefaultUploadOver is the time over which the rate of a body is judged.
const DefaultUploadOver = 30 * time.Second

// Defaults of the policy's own waits.
const (
	defaultWait  = 10 * time.Second
	defaultPause = 15 * time.Minute
)

// WithDefaults is p with every duration that is 0 replaced by its default.
func (p Policy) WithDefaults() Policy {
	t := &p.Timeouts
	t.Connect = cmp.Or(t.Connect, 5*time.Second)
	t.TLS = cmp.Or(t.TLS, 5*time.Second)
	t.Headers = cmp.Or(t.Headers, 5*time.Second)
	t.Attempt = cmp.Or(t.Attempt, 10*time.Second)
	t.Call = cmp.Or(t.Call, time.Minute)
	t.Idle = cmp.Or(t.Idle, 30*time.Second)
	t.UploadIdle, t.UploadOver = cmp.Or(t.UploadIdle, t.Idle), cmp.Or(t.UploadOver, DefaultUploadOver)
	p.MaxWait = cmp.Or(p.MaxWait, defaultWait)
	p.MaxPause = cmp.Or(p.MaxPause, defaultPause)
	p.Fair = p.Fair.withDefaults()
	return p
}

// A FieldError is one mistake in a Policy: the path of the field in the policy,
// and what is wrong with it.
type FieldError struct {
	Field string // "limits[2]", "retry", "timeouts"
	Err   error
}

// Error reads "limits[2]: rate: must be positive".
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// Validate reports every mistake at once, as joined FieldErrors.
func (p Policy) Validate() error {
	var m mistakes
	m.add("retry", p.Retry.Validate())
	if p.AskAgain.Attempts > 0 {
		m.add("ask again", p.AskAgain.Validate())
	}
	m.add("budget", p.Budget.Validate())
	m.add("breaker", p.Breaker.Validate())
	m.add("classify", p.Classify.Validate())
	m.add("fair", p.Fair.validate())
	m.add("concurrency", p.Concurrency.validate())
	if p.Quota != nil {
		m.add("quota", p.Quota.Validate())
	}
	if p.MaxPause < 0 {
		m.add("max_pause", fmt.Errorf("%v: must not be negative", p.MaxPause))
	}
	for i, o := range p.Operations {
		m.add(fmt.Sprintf("operations[%d]", i), o.validate(p.Operations[:i]))
	}
	for i, l := range p.Limits {
		m.add(fmt.Sprintf("limits[%d]", i), p.validateLimit(i, l))
	}
	m.add("limits", p.validateCharges())
	return errors.Join(m...)
}

// mistakes are what is wrong with a policy, each a FieldError.
type mistakes []error

// add adds what is wrong with a field, each part of a joined error for itself.
func (m *mistakes) add(field string, err error) {
	for _, e := range parts(err) {
		*m = append(*m, &FieldError{field, e})
	}
}

// parts takes a joined error apart.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// validateLimit reports what is wrong with a limit by itself, and among those before it and the
// operations: a limit that counts an operation which nobody declares would count nothing.
func (p Policy) validateLimit(i int, l limit.Limit) error {
	errs := parts(l.Validate())
	if slices.ContainsFunc(p.Limits[:i], func(b limit.Limit) bool { return b.Name == l.Name }) {
		errs = append(errs, fmt.Errorf("name %q: is used twice", l.Name))
	}
	for _, name := range l.Operations {
		known := name == DefaultOperation || p.declares(name)
		if !known && len(p.Operations) > 0 && !p.Undeclared {
			errs = append(errs, fmt.Errorf("operations %q: unknown operation", name))
		}
	}
	return errors.Join(errs...)
}

// A call can be charged to so many limits, and to so many that a fleet may share: what a call in line remembers of each is a
// bit of a word, and one write of a store has room for the latter.
const (
	mostCharges = 64
	mostFleet   = 32
)

// validateCharges reports the operations whose calls are charged to more limits than a call can be.
func (p *Policy) validateCharges() error {
	if len(p.Limits) <= mostFleet {
		return nil
	}
	var errs []error
	check := func(name string) {
		all, shared := 0, 0
		for i := range p.Limits {
			if of := p.Limits[i].Operations; len(of) == 0 || slices.Contains(of, name) {
				all++
				if !p.Limits[i].Local {
					shared++
				}
			}
		}
		const mend = "set operations of each limit, or remove some limits"
		switch {
		case all > mostCharges:
			errs = append(errs, fmt.Errorf("%d of them count operation %q: want at most %d; %s", all, name, mostCharges, mend))
		case shared > mostFleet:
			errs = append(errs, fmt.Errorf("%d of them that are not local count operation %q: want at most %d; %s", shared, name, mostFleet, mend))
		}
	}
	check(DefaultOperation)
	for i := range p.Operations {
		check(p.Operations[i].Name)
	}
	return errors.Join(errs...)
}

// declares reports whether the operation is one of the policy's.
func (p *Policy) declares(name string) bool {
	return slices.ContainsFunc(p.Operations, func(o Operation) bool { return o.Name == name })
}

// Bounded reports whether anything is bounded that is in flight.
func (p *Policy) Bounded() bool {
	on := p.Concurrency.on()
	for i := range p.Operations {
		c := p.Operations[i].Concurrency
		on = on || c != nil && c.on()
	}
	return on
}

// An Operation is a class of calls with limits, safety and retries of its own.
type Operation struct {
	Name    string
	Methods []string // HTTP methods; none means any
	Path    string   // a prefix of the path, however that is written; "" means any
	AnyCase bool     // Path is compared without regard to letter case

	// Safe says whether a call may be repeated even if it may have been done
	// already. "" means by method: GET, HEAD, OPTIONS, TRACE, PUT and DELETE are
	// safe, and so is whatever has an Idempotency-Key.
	Safe Safety

	// Priority is that of calls that are normal by themselves; see Call.Priority.
	Priority limit.Priority

	Retry       *retry.Config // in place of the policy's
	Concurrency *Concurrency  // in place of the policy's: then the operation has a bound of its own, or none
}

// A Safety says whether repeating does harm.
type Safety string

// What an Operation's Safe may be.
const (
	ByMethod Safety = ""
	Yes      Safety = "yes"
	No       Safety = "no"
)

// DefaultOperation is the name of calls that belong to no declared operation.
const DefaultOperation = "default"

// validate reports what is wrong with an operation by itself, and among those before it.
func (o Operation) validate(before []Operation) error {
	var errs []error
	if o.Name == "" {
		errs = append(errs, errors.New("name: must not be empty; limits and metrics refer to it"))
	}
	if slices.ContainsFunc(before, func(b Operation) bool { return b.Name == o.Name }) {
		errs = append(errs, fmt.Errorf("name %q: is used twice", o.Name))
	}
	if o.Priority < limit.Low || o.Priority > limit.High {
		errs = append(errs, fmt.Errorf("priority %d: want Low, Normal or High", o.Priority))
	}
	errs = append(errs, o.validateHTTP()...)
	if o.Concurrency != nil {
		errs = append(errs, of("concurrency", o.Concurrency.validate())...)
	}
	if o.Retry != nil {
		errs = append(errs, of("retry", o.Retry.Validate())...)
	}
	return errors.Join(errs...)
}

// validateHTTP validates what HTTP requests are told apart by.
func (o Operation) validateHTTP() (errs []error) {
	for _, m := range o.Methods {
		if m == "" || strings.ToUpper(m) != m || strings.ContainsAny(m, " \t\r\n") {
			errs = append(errs, fmt.Errorf("methods %q: want an HTTP method in capitals", m))
		}
	}
	if o.Path != "" && !strings.HasPrefix(o.Path, "/") {
		errs = append(errs, fmt.Errorf("path %q: must begin with a slash", o.Path))
	}
	if o.Safe != ByMethod && o.Safe != Yes && o.Safe != No {
		errs = append(errs, fmt.Errorf("safe %q: want yes or no, or nothing to decide by the method", o.Safe))
	}
	return errs
}

// of are the mistakes of a field, with its name.
func of(field string, err error) (errs []error) {
	for _, err := range parts(err) {
		errs = append(errs, fmt.Errorf("%s: %w", field, err))
	}
	return errs
}

// Fair has calls that must wait for a limit go in turn, flow by flow: one who sends
// a thousand calls at once makes nobody else wait for all of them. The zero Fair is
// off: then those who wait go in the order in which they came; for a limit that a fleet
// shares, by priority first.
//
// There is one line for each limit and key that somebody waits for, so that a call that is
// held by a limit of its own stands in nobody's way. Who goes next is decided when there is
// something to give. Within a line what counts is the cost in the limit's unit: a call of
// 8,000 tokens takes as much of a flow's share of a token limit as sixteen of 500.
type Fair struct {
	By      string          // the scope whose values are the flows ("user"); "" turns it off
	Weights PriorityWeights // of the priorities

	Longest int // most calls that wait, all together; the next are refused at once. 0 means 10,000
	PerFlow int // most calls of one flow that wait; 0 means 1,000
}

// PriorityWeights are how those of each priority share a limit while all have somebody
// waiting: each gets its weight's part, however many flows it has. 0 means 16, 4 and
// 1: four times what the next one gets, and a 21st for the lowest, which is slow but
// never stands still.
type PriorityWeights struct{ High, Normal, Low int }

// lines is the part of it that the lines want to know.
func (f Fair) lines() line.Config {
	if f.By == "" {
		return line.Config{Longest: math.MaxInt32, PerFlow: math.MaxInt32}
	}
	return f.config()
}

// config is that of the lines, with Fair on.
func (f Fair) config() line.Config {
	w := f.Weights
	return line.Config{Weights: [line.Priorities]int{w.High, w.Normal, w.Low}, Longest: f.Longest, PerFlow: f.PerFlow}
}

// withDefaults fills in what is 0, unless Fair is off.
func (f Fair) withDefaults() Fair {
	if f.By == "" {
		return f
	}
	c := f.config().WithDefaults()
	f.Weights = PriorityWeights{c.Weights[0], c.Weights[1], c.Weights[2]}
	f.Longest, f.PerFlow = c.Longest, c.PerFlow
	return f
}

// validate reports all that is wrong with it.
func (f Fair) validate() error {
	if f.By == "" && f != (Fair{}) {
		return errors.Join(fmt.Errorf("by %q: want a scope whose values take turns, such as user", f.By), f.config().Validate())
	}
	return f.config().Validate()
}
