// Package notify alerts people when calls are given up, a quota is used up, an upstream throttles within its limits, a breaker
// opens or the fleet's store is unavailable. It also reports the end. Messages go to SNS, a webhook or ntfy.
//
//	hook, err := notify.NewWebhook(notify.Webhook{URL: url, Secret: secret})
//	n, err := notify.New(notify.Config{Targets: []notify.Target{hook}})
//	s3, err := weir.New("s3", policy, weir.Options{Events: n.Events()})
//	...
//	err = n.Close(ctx) // sends the messages that still wait
//
// A subject is a kind, an upstream, an operation and a limit. Each subject gets at most one message per interval, and one when it
// has ended. The next message has the number of suppressed events. Calls do not wait for targets, and targets do not wait for
// each other. docs/how-to/notify.md describes the messages.
package notify

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/observe"
)

// A Config specifies the reported kinds, the interval and the targets. It may be shared by goroutines that do not change it.
type Config struct {
	Targets  []Target      // at least one
	Kinds    []Kind        // kinds to report; empty means all except Retry
	Interval time.Duration // minimum time between two alerts on a subject; 0 means 15m
	Subjects int           // maximum number of subjects; 0 means 1,000. Messages on further subjects are dropped
	Queue    int           // messages that may wait for a target; 0 means 100. Further messages are dropped
	Host     string        // "" means the host name of the machine

	// Runbook is the URL of the runbook, "https://wiki.example.com/weir#{kind}"; "" means none.
	Runbook string

	// Service returns the AWS service of an upstream, such as "drs", or "" for other upstreams. nil means the service in the
	// names that package awsx gives: aws/drs/eu-west-1/123456789012.
	Service func(upstream string) string

	Timeout  time.Duration // for one attempt to send; 0 means 10s
	Attempts int           // attempts in all to send a message to a target; 0 means 4
	Log      *slog.Logger  // receives messages that could not be sent; nil means no log
}

// WithDefaults returns the configuration with all defaults.
func (c Config) WithDefaults() Config {
	c.Interval, c.Timeout = cmp.Or(c.Interval, 15*time.Minute), cmp.Or(c.Timeout, 10*time.Second)
	c.Subjects, c.Queue, c.Attempts = cmp.Or(c.Subjects, 1000), cmp.Or(c.Queue, 100), cmp.Or(c.Attempts, 4)
	if c.Service == nil {
		c.Service = serviceOf
	}
	if c.Host == "" {
		c.Host, _ = os.Hostname()
	}
	if len(c.Kinds) == 0 {
		c.Kinds = slices.DeleteFunc(slices.Clone(Kinds[:]), func(k Kind) bool { return k == Retry })
	}
	return c
}

// serviceOf returns the service in the name of an upstream of package awsx, "" if there is none.
func serviceOf(upstream string) string {
	part := strings.Split(upstream, "/")
	if len(part) != 4 || part[0] != "aws" {
		return ""
	}
	return part[1]
}

// Validate returns all errors in the configuration.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Targets) == 0 || slices.Contains(c.Targets, nil) {
		bad("targets: want at least one, and none that is nil")
	}
	for _, k := range c.Kinds {
		if !slices.Contains(Kinds[:], k) {
			bad("kinds: unknown kind %q; want some of %v", k, Kinds)
		}
	}
	c = c.WithDefaults()
	if c.Interval < time.Second || c.Timeout < 0 {
		bad("interval %v, timeout %v: want at least 1s, and more than 0", c.Interval, c.Timeout)
	}
	if c.Subjects < 1 || c.Queue < 1 || c.Attempts < 1 {
		bad("subjects %d, queue %d, attempts %d: must be at least 1", c.Subjects, c.Queue, c.Attempts)
	}
	if u, err := url.Parse(c.Runbook); c.Runbook != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		bad("runbook: want the URL of a page, https://...")
	}
	return errors.Join(errs...)
}

// A Notifier sends messages. Create one with New, pass its Events to upstreams, and close it at the end. It is safe for
// concurrent use.
type Notifier struct {
	config  Config
	kinds   map[Kind]bool
	workers []*worker
	stop    chan struct{}
	kick    chan struct{} // something is due earlier than expected
	ticking sync.WaitGroup

	mu     sync.Mutex
	ledger ledger
	closed bool

	open     map[string]map[string]uint64 // by upstream: the keys of open breakers, and the number of the opening
	openings uint64
}

// New returns a running notifier, or all errors in its configuration.
func New(c Config) (*Notifier, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	c = c.WithDefaults()
	n := &Notifier{
		config: c, kinds: make(map[Kind]bool), stop: make(chan struct{}), kick: make(chan struct{}, 1),
		ledger: ledger{interval: c.Interval, most: c.Subjects, entries: make(map[subject]*entry)},
		open:   make(map[string]map[string]uint64),
	}
	for _, k := range c.Kinds {
		n.kinds[k] = true
	}
	for _, t := range c.Targets {
		n.workers = append(n.workers, newWorker(t, &n.config))
	}
	n.ticking.Go(n.tick)
	return n, nil
}

// happened reports an event, unless its subject was reported within the interval.
func (n *Notifier) happened(s subject, detail func() string) { n.happenedTo("", nil, s, detail) }

// longestError is the maximum length of an error text in a message.
const longestError = 500

// happenedTo is happened for a call. The message names the region and account in its keys. Only for calls to AWS does it include
// the error text: other upstreams could put anything into it.
func (n *Notifier) happenedTo(keys string, err error, s subject, detail func() string) {
	if !n.kinds[s.kind] {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	notice, ok := n.ledger.happened(now, s, detail)
	if ok {
		notice.region, notice.account = observe.Region(keys), observe.Account(keys)
		if err != nil && notice.region != "" {
			notice.err = observe.Redact(err.Error(), longestError)
		}
		n.send(now, notice)
	}
	if ok || s.kind.lasts() {
		n.hurry()
	}
}

// over reports the end of a lasting state.
func (n *Notifier) over(s subject, detail string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended(s, detail)
}

// ended is over for callers that hold mu.
func (n *Notifier) ended(s subject, detail string) {
	now := time.Now()
	if notice, ok := n.ledger.over(now, s, detail); ok {
		n.send(now, notice)
		n.hurry()
	}
}

func (n *Notifier) hurry() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// tick sends messages as they become due.
func (n *Notifier) tick() {
	for n.wait(n.due()) {
	}
}

// wait waits until next, unless it is zero, or until something is due earlier. It returns false when the notifier is closed.
func (n *Notifier) wait(next time.Time) bool {
	var expired <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-n.stop:
		return false
	case <-n.kick:
	case <-expired:
	}
	return true
}

func (n *Notifier) due() (next time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	notices, next := n.ledger.due(now)
	for _, notice := range notices {
		n.send(now, notice)
	}
	return next
}

// send passes a message to the worker of every target. The caller holds mu.
func (n *Notifier) send(now time.Time, told notice) {
	if n.closed {
		return
	}
	m := Message{
		ID: rand.Text(), Kind: told.kind, Resolved: told.resolved,
		Upstream: told.upstream, Operation: told.operation, Limit: told.limit, Host: n.config.Host,
		Region: told.region, Account: told.account,
		Since: told.since.UTC(), At: now.UTC(), Severity: told.kind.Severity(), Detail: told.detail, Error: told.err, Suppressed: told.suppressed,
		Runbook: strings.ReplaceAll(n.config.Runbook, "{kind}", string(told.kind)),
	}
	if !m.Resolved {
		m.Action, m.Steps = words[m.Kind].action, stepsFor(m.Kind, n.config.Service(m.Upstream))
	}
	for _, w := range n.workers {
		w.take(m)
	}
}

// Flush waits until every message has been sent or given up, or ctx ends.
func (n *Notifier) Flush(ctx context.Context) error {
	for _, w := range n.workers {
		if !w.box.Flush(ctx) {
			return fmt.Errorf("flush messages: %w; %d not yet sent to %s", context.Cause(ctx), w.stats().Waiting, w.target.Name())
		}
	}
	return nil
}

// Close sends the messages that wait and ends the notifier. Later events are ignored. When ctx ends, the remaining messages are
// dropped, and the error has their number.
func (n *Notifier) Close(ctx context.Context) error {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.stop)
	}
	n.mu.Unlock()
	n.ticking.Wait()
	var errs []error
	for _, w := range n.workers {
		if lost := w.box.Close(ctx); lost > 0 {
			errs = append(errs, fmt.Errorf("close notifier: %d messages to %s were dropped", lost, w.target.Name()))
		}
	}
	return errors.Join(errs...)
}

// Stats counts the messages of one target.
type Stats struct {
	Target  string
	Sent    int64
	Failed  int64 // given up after all attempts
	Dropped int64 // no room, or still waiting at the end
	Waiting int64
}

// Stats returns the counts of each target. untold is the number of events that were not reported because there were too many
// subjects.
func (n *Notifier) Stats() (targets []Stats, untold int64) {
	for _, w := range n.workers {
		targets = append(targets, w.stats())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return targets, n.ledger.lost
}
