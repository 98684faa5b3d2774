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

// A Policy is the complete configuration of an upstream, as plain data. The same value serves a Go program, a
// configuration file and the status page. The zero Policy has no limits, three attempts, a retry budget and a
// breaker. It may be shared by goroutines that do not change it.
type Policy struct {
	Operations []Operation // classes of calls; an HTTP request belongs to the first that matches
	Limits     []limit.Limit

	// Shadow are limits that are tried before they bind: they are charged for allowed calls, and neither refuse calls nor
	// make them wait. Upstream.Trials states what they would have done. Their names may be those of Limits. Rates that
	// adapt, or are advertised, cannot be tried. Package sim does not play them.
	Shadow []limit.Limit

	// Undeclared lets operations that are not in Operations keep their names in events and metrics, up to 200 names.
	// Set it only if the program names its operations: with names chosen by clients, each would become a metric.
	Undeclared bool

	// Concurrency bounds the attempts in flight: of each declared operation if the bound is learned, of all
	// operations together if it is a number. The zero Concurrency is no bound.
	Concurrency Concurrency

	Breaker breaker.Config

	// BreakerScope is the name of the key that has separate breakers. "" means one breaker for each of Operations and
	// one for all other calls, or a single breaker if there are no Operations. WholeUpstream always means a single
	// breaker.
	BreakerScope string

	Retry  retry.Config
	Budget retry.BudgetConfig
	Quota  *retry.QuotaConfig // the retry quota of the AWS SDKs, instead of Budget; nil means Budget

	Timeouts Timeouts
	MaxWait  time.Duration // longest wait for a turn; 0 means 10s, and up to a minute for a slot (see Concurrency); below 0 means none
	AskAgain retry.Config  // if it has Attempts ("not-enough-tokens"), calls that find too few units retry on this schedule instead of queueing
	Fair     Fair          // the order of calls that wait for a limit
	MaxPause time.Duration // longest pause that a hint can cause, except for quotas; 0 means 15m
	Classify classify.Rules
}

// Timeouts bound the parts of a call. 0 means the default. A negative value means no bound.
type Timeouts struct {
	Connect time.Duration // to make a connection; 0 means 5s
	TLS     time.Duration // TLS handshake; 0 means 5s
	Headers time.Duration // from the end of the request to the headers of the response; 0 means 5s
	Attempt time.Duration // one attempt, over HTTP until its headers; 0 means 10s
	Call    time.Duration // all attempts and the waits between them, over HTTP until the headers; 0 means 60s

	// Bodies of requests and responses over HTTP; see httpx.ErrBodyStalled.
	Idle time.Duration // longest time without a byte; 0 means 30s
	Body time.Duration // longest time for the body; 0 means no bound

	// Bodies of requests that are read from elsewhere than memory.
	UploadIdle time.Duration // longest time without a byte; 0 means Idle
	UploadRate int64         // lowest rate in bytes per second, averaged over UploadOver; 0 means no bound
	UploadOver time.Duration // 0 means DefaultUploadOver
}

// DefaultUploadOver is the time over which the rate of a request body is averaged.
const DefaultUploadOver = 30 * time.Second

// Defaults of the policy's waits.
const (
	defaultWait  = 10 * time.Second
	defaultPause = 15 * time.Minute
)

// WithDefaults returns p with every duration that is 0 replaced by its default.
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

// A FieldError is one mistake in a Policy.
type FieldError struct {
	Field string // the path of the field: "limits[2]", "retry", "timeouts"
	Err   error
}

// Error returns a text such as "limits[2]: rate: must be positive".
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// Validate returns all mistakes as joined FieldErrors.
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
	for i, l := range p.Shadow {
		m.add(fmt.Sprintf("shadow[%d]", i), p.validateShadow(i, l))
	}
	return errors.Join(m...)
}

// mistakes lists what is wrong with a policy. Each is a FieldError.
type mistakes []error

// add adds an error of a field. It splits a joined error.
func (m *mistakes) add(field string, err error) {
	for _, e := range parts(err) {
		*m = append(*m, &FieldError{field, e})
	}
}

// parts splits a joined error.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// validateLimit returns the mistakes of limit i, compared with the limits before it and the operations. A limit for
// an undeclared operation is a mistake, because it would count no calls.
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

// validateShadow returns the mistakes of shadow limit i.
func (p Policy) validateShadow(i int, l limit.Limit) error {
	errs := parts(Policy{Operations: p.Operations, Undeclared: p.Undeclared, Limits: p.Shadow}.validateLimit(i, l))
	if l.Adaptive.On || l.Advertised != "" {
		errs = append(errs, errors.New("adaptive and advertised rates cannot be tried: a shadow limit does not see their effect"))
	}
	return errors.Join(errs...)
}

// mostCharges is how many limits can apply to one call: a queued call has a word with one bit for each. mostFleet is
// how many of them a fleet can share: one write to the store has room for no more.
const (
	mostCharges = 64
	mostFleet   = 32
)

// validateCharges reports the operations to which too many limits apply.
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
			errs = append(errs, fmt.Errorf("%d limits count operation %q: want at most %d; %s", all, name, mostCharges, mend))
		case shared > mostFleet:
			errs = append(errs, fmt.Errorf("%d limits that are not local count operation %q: want at most %d; %s", shared, name, mostFleet, mend))
		}
	}
	check(DefaultOperation)
	for i := range p.Operations {
		check(p.Operations[i].Name)
	}
	return errors.Join(errs...)
}

// declares reports whether the policy declares the operation.
func (p *Policy) declares(name string) bool {
	return slices.ContainsFunc(p.Operations, func(o Operation) bool { return o.Name == name })
}

// Bounded reports whether the policy bounds any attempts in flight.
func (p *Policy) Bounded() bool {
	on := p.Concurrency.on()
	for i := range p.Operations {
		c := p.Operations[i].Concurrency
		on = on || c != nil && c.on()
	}
	return on
}

// An Operation is a class of calls with separate limits, safety and retries.
type Operation struct {
	Name    string
	Methods []string // HTTP methods; empty means any
	Path    string   // a prefix of the path, in any encoding; "" means any
	AnyCase bool     // compare Path without regard to letter case

	// Safe states whether a call may be repeated although it may have been executed. "" depends on the method: GET,
	// HEAD, OPTIONS, TRACE, PUT and DELETE are safe, and any request with an idempotency key in a header.
	Safe Safety

	// Priority applies to calls without a priority; see Call.Priority.
	Priority limit.Priority

	Retry       *retry.Config // replaces the policy's
	Concurrency *Concurrency  // replaces the policy's: the operation then has a separate bound, or none
}

// A Safety states whether a repeated call does harm.
type Safety string

// Values of Operation.Safe.
const (
	ByMethod Safety = ""
	Yes      Safety = "yes"
	No       Safety = "no"
)

// DefaultOperation is the name of all calls that belong to no declared operation.
const DefaultOperation = "default"

// validate returns what is wrong with an operation, compared with the operations before it.
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

// validateHTTP checks the fields that match HTTP requests.
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

// of prefixes each mistake with the name of its field.
func of(field string, err error) (errs []error) {
	for _, err := range parts(err) {
		errs = append(errs, fmt.Errorf("%s: %w", field, err))
	}
	return errs
}

// Fair makes calls that wait for a limit take turns by flow, so that one user who sends a thousand calls together
// does not delay all other users. The zero Fair is off: calls are admitted in the order of their arrival, and for a
// limit that a fleet shares by priority first.
//
// Each limit and key has a separate queue, so that a call held by one limit delays no calls that do not need it. The
// next call is chosen when units become available. Within a queue each flow's share is measured in the limit's unit:
// one call of 8,000 tokens counts as much as sixteen calls of 500.
type Fair struct {
	By      string          // the scope whose values are the flows ("user"); "" turns Fair off
	Weights PriorityWeights // of the priorities

	Longest int // most calls that wait in total; further calls are refused immediately; 0 means 10,000
	PerFlow int // most waiting calls of one flow; 0 means 1,000
}

// PriorityWeights divide a limit between the priorities while calls of each priority wait. A share depends on the
// weight only,
// not on the number of flows. 0 means 16, 4 and 1. Each priority then gets four times the share of the next one, and
// the lowest gets a 21st, so that it never starves.
type PriorityWeights struct{ High, Normal, Low int }

// lines returns the configuration of the queues.
func (f Fair) lines() line.Config {
	if f.By == "" {
		return line.Config{Longest: math.MaxInt32, PerFlow: math.MaxInt32}
	}
	return f.config()
}

// config returns the configuration of the queues with Fair on.
func (f Fair) config() line.Config {
	w := f.Weights
	return line.Config{Weights: [line.Priorities]int{w.High, w.Normal, w.Low}, Longest: f.Longest, PerFlow: f.PerFlow}
}

// withDefaults replaces zero values, unless Fair is off.
func (f Fair) withDefaults() Fair {
	if f.By == "" {
		return f
	}
	c := f.config().WithDefaults()
	f.Weights = PriorityWeights{c.Weights[0], c.Weights[1], c.Weights[2]}
	f.Longest, f.PerFlow = c.Longest, c.PerFlow
	return f
}

// validate returns everything that is wrong with it.
func (f Fair) validate() error {
	if f.By == "" && f != (Fair{}) {
		return errors.Join(fmt.Errorf("by %q: want a scope whose values take turns, such as user", f.By), f.config().Validate())
	}
	return f.config().Validate()
}
