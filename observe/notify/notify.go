// Package notify tells people when a limiter needs them: calls are given up, a quota is
// used up, an upstream throttles within its limits, a breaker opened, the fleet's store is
// away; and when that is over. Messages go to SNS, a webhook or ntfy.
//
//	hook, err := notify.NewWebhook(notify.Webhook{URL: url, Secret: secret})
//	n, err := notify.New(notify.Config{Targets: []notify.Target{hook}})
//	s3, err := weir.New("s3", policy, weir.Options{Events: n.Events()})
//	...
//	err = n.Close(ctx) // at the end: sends what still waits
//
// Of each subject (a kind, an upstream, an operation, a limit) there is one message an
// interval, and one when it is over; the next says how many were left out. Nothing waits
// for a target, and no target for another. docs/how-to/notify.md says what messages look like.
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

// A Config says what is told, how often and to whom.
type Config struct {
	Targets  []Target      // at least one
	Kinds    []Kind        // what to tell; none means all but Retry
	Interval time.Duration // at least so long between two messages on a subject; 0 means 15m
	Subjects int           // how many are remembered; 0 means 1,000. Beyond, messages are dropped
	Queue    int           // messages that may wait for a target; 0 means 100. Beyond, they are dropped
	Host     string        // "" means the host's name

	// Runbook is the page to look at, "https://wiki.example.com/weir#{kind}"; "" means none.
	Runbook string

	// Service returns the service of AWS that an upstream is ("drs"); "" if it is none. nil means the one in the names
	// that package awsx gives: aws/drs/eu-west-1/123456789012.
	Service func(upstream string) string

	Timeout  time.Duration // for one attempt to send; 0 means 10s
	Attempts int           // to send a message to a target, in all; 0 means 4
	Log      *slog.Logger  // hears of messages that could not be sent; nil means nobody does
}

// WithDefaults is the configuration with every default filled in.
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

// serviceOf returns the service in the name of an upstream of package awsx; "" if there is none.
func serviceOf(upstream string) string {
	part := strings.Split(upstream, "/")
	if len(part) != 4 || part[0] != "aws" {
		return ""
	}
	return part[1]
}

// Validate says everything that is wrong with the configuration.
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

// A Notifier sends messages. Make one with New, give its Events to upstreams, and close
// it; it is safe for concurrent use.
type Notifier struct {
	config  Config
	kinds   map[Kind]bool
	workers []*worker
	stop    chan struct{}
	kick    chan struct{} // something is due sooner than was thought
	ticking sync.WaitGroup

	mu     sync.Mutex
	ledger ledger
	closed bool

	open     map[string]map[string]uint64 // keys of breakers that are open, by upstream, and which opening it was
	openings uint64
}

// New makes a notifier and starts it, or says everything that is wrong with its
// configuration.
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

// happened tells of something bad, unless that was told lately.
func (n *Notifier) happened(s subject, detail func() string) { n.happenedTo("", nil, s, detail) }

// longestError is how much of an error's text a message has.
const longestError = 500

// happenedTo is happened to a call with keys, of which the message names region and account. If the call went to AWS the
// message has the text of its error, too: those of other upstreams may say anything.
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

// over tells that a lasting state has ended.
func (n *Notifier) over(s subject, detail string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended(s, detail)
}

// ended is over for a caller that holds mu.
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

// tick tells what becomes due.
func (n *Notifier) tick() {
	for n.wait(n.due()) {
	}
}

// wait waits for the instant, if there is one, or for something sooner. It reports false
// when the notifier is closed.
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

// send gives a message to every target's worker. The caller holds mu.
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

// Close sends the messages that wait and ends the notifier: what happens later is not
// told. What is not sent when ctx ends is dropped, and the error says how much that is.
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

// Stats are numbers of messages, for one target.
type Stats struct {
	Target  string
	Sent    int64
	Failed  int64 // given up after all attempts
	Dropped int64 // for want of room, or left at the end
	Waiting int64
}

// Stats says how sending goes, for each target. untold is how many happenings went unheard
// because there were too many subjects.
func (n *Notifier) Stats() (targets []Stats, untold int64) {
	for _, w := range n.workers {
		targets = append(targets, w.stats())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return targets, n.ledger.lost
}
