package observe_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A script calls a random upstream under a random policy. It records its own view: requests and results at the upstream, waits at
// the clock, and results of Do at the caller. It receives no events.
type script struct {
	r      *rand.Rand
	clock  *virtual
	u      *weir.Upstream
	policy weir.Policy
	seen   tally

	call      weir.Call
	operation string // the declared operation that the call belongs to
	cancel    context.CancelFunc
	attempts  int
	last      outcome.Class
	between   bool                     // the next sleep is the pause between attempts
	heldBack  bool                     // the next sleep is another pause between attempts
	left      bool                     // the caller left during the wait between attempts
	waiting   time.Duration            // before the next attempt
	away      bool                     // every attempt fails
	phases    map[string]breaker.Phase // of breakers, by operation
}

// A tally has the expected results: series by their labels, and lines of the log.
type tally struct {
	series map[string]float64
	lines  map[string][]string // by correlation ID, in order; lines about breakers under ""
}

func (t *tally) count(format string, args ...any) { t.add(1, format, args...) }

func (t *tally) add(n float64, format string, args ...any) {
	t.series[fmt.Sprintf(format, args...)] += n
}

func (s *script) line(message, limit, key, why string) {
	if key == "" && len(s.call.Keys) > 0 {
		key = "tenant=" + s.call.Keys["tenant"] // the line concerns no particular limit
	}
	text := fmt.Sprintf("%s operation=%s limit=%s key=%s why=%s", message, s.operation, limit, key, why)
	s.seen.lines[s.call.ID] = append(s.seen.lines[s.call.ID], text)
}

func newScript(seed uint64, e weir.Events) (*script, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &script{r: r, policy: randomPolicy(r), phases: make(map[string]breaker.Phase), away: r.IntN(8) == 0}
	s.seen = tally{make(map[string]float64), make(map[string][]string)}
	s.clock = &virtual{now: time.Hour, sleeps: s.sleeps}
	var err error
	e = weir.Tee(e, weir.Events{HeldBack: s.held})
	s.u, err = weir.New("upstream", s.policy, weir.Options{Clock: s.clock, Events: e, Rand: r})
	return s, err
}

func randomPolicy(r *rand.Rand) weir.Policy {
	p := weir.Policy{
		Operations: []weir.Operation{{Name: "put"}, {Name: "list"}},
		Breaker:    randomBreaker(r),
		Retry:      retry.Config{Attempts: 1 + r.IntN(4), Jitter: retry.Jitter(r.IntN(6))},
		Budget:     []retry.BudgetConfig{{}, {Off: true}, {Share: .01, Floor: .1}}[r.IntN(3)], // the default, none, and a small budget
		MaxWait:    time.Duration(r.IntN(6)-1) * 2 * time.Second,
	}
	if r.IntN(3) == 0 {
		p.Retry = retry.Config{} // the default
	}
	p.Timeouts.Call = time.Duration(r.IntN(3)) * 2 * time.Second
	for _, name := range []string{"a", "b", "tokens"}[r.IntN(4):] {
		l := limit.Limit{Name: name, Rate: bucket.Rate{Amount: 1 + r.Int64N(4), Per: time.Second}}
		if r.IntN(2) == 0 {
			l.Scope = "tenant"
		}
		if r.IntN(2) == 0 {
			l.Operations = []string{"put", weir.DefaultOperation}[:1+r.IntN(2)]
		}
		if name == "tokens" {
			l.Unit, l.Amount = "tokens", 10*l.Amount
		}
		p.Limits = append(p.Limits, l)
	}
	return p
}

// randomBreaker returns a breaker that opens early, the default, or none.
func randomBreaker(r *rand.Rand) breaker.Config {
	switch r.IntN(4) {
	case 0:
		return breaker.Config{Off: true}
	case 1:
		return breaker.Config{}
	}
	return breaker.Config{Failures: 1 + r.IntN(8), Open: time.Duration(1+r.IntN(4)) * time.Second}
}

// secretError returns an error as clients do: with the URL of the call.
func secretError(cause error) error {
	return fmt.Errorf("Get %q: %w", "https://user:"+canary+"@api.example.com/v1?api_key="+canary, cause)
}

type scripted struct{ o outcome.Outcome }

func (s scripted) Error() string            { return "scripted " + s.o.Class.String() }
func (s scripted) Outcome() outcome.Outcome { return s.o }

func (s *script) run() {
	for i := range 1 + s.r.IntN(20) {
		s.clock.now += time.Duration(s.r.IntN(3000)) * time.Millisecond
		s.makeCall(i)
	}
}

func (s *script) makeCall(i int) {
	s.call = weir.Call{
		Operation: []string{"put", "list", "undeclared-wren"}[s.r.IntN(3)],
		Keys:      map[string]string{"tenant": fmt.Sprintf("wren-%d", s.r.IntN(2))},
		Cost:      map[string]int64{"tokens": []int64{0, 5, 20, 1000}[s.r.IntN(4)]},
		Safe:      s.r.IntN(3) > 0,
		ID:        fmt.Sprintf("wren-call-%d", i),
	}
	s.operation = s.call.Operation
	if s.operation == "undeclared-wren" {
		s.operation = weir.DefaultOperation
	}
	s.attempts, s.last, s.between, s.heldBack, s.left, s.waiting = 0, outcome.Unknown, false, false, false, 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.cancel = cancel
	_, err := weir.Do(ctx, s.u, s.call, s.send)
	s.lookAtBreaker()
	s.returned(ctx, err)
}

// send is the upstream.
func (s *script) send(context.Context) (int, error) {
	s.lookAtBreaker()
	s.allowed()
	s.attempts++
	took := time.Duration(s.r.IntN(1000)) * time.Millisecond
	s.clock.now += took
	o := outcome.Outcome{Class: outcome.OK}
	var err error
	n := s.r.IntN(20)
	if s.away {
		n = 7 + n%9
	}
	switch {
	case n < 7:
	case n < 12:
		o = outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown-wren", Undone: true}
		if s.r.IntN(2) == 0 {
			o.Hint = outcome.Hint{Said: true, After: time.Duration(1+s.r.IntN(4000)) * time.Millisecond}
		}
		err = secretError(scripted{o})
	case n < 16:
		o = outcome.Outcome{Class: outcome.Failed, Code: "500-wren"}
		err = secretError(scripted{o})
	case n < 17:
		o = outcome.Outcome{Class: outcome.Rejected, Code: "400-wren"}
		err = secretError(scripted{o})
	case n < 18:
		s.cancel()
		o = outcome.Outcome{Class: outcome.Canceled}
		err = secretError(context.Canceled)
	default:
		o = outcome.Outcome{Class: outcome.Unknown}
		err = secretError(errors.New("no idea"))
	}
	s.ended(o, took)
	return 0, err
}

func (s *script) allowed() {
	if s.waiting > 0 {
		s.seen.count("decisions %s waited", s.operation)
	} else {
		s.seen.count("decisions %s allowed", s.operation)
	}
	s.turn()
}

// turn ends a wait, whether the attempt is then allowed or not.
func (s *script) turn() {
	if s.waiting > 0 {
		s.seen.count("wait durations")
		s.seen.add(s.waiting.Seconds(), "wait seconds")
	}
	s.waiting = 0
}

func (s *script) ended(o outcome.Outcome, took time.Duration) {
	s.last, s.between = o.Class, true
	s.seen.count("attempts %s %v", s.operation, o.Class)
	s.seen.count("attempt durations %v", o.Class)
	s.seen.add(took.Seconds(), "attempt seconds %v", o.Class)
	if o.Class == outcome.Rejected {
		s.line("rejected", "", "", "")
	}
	if o.Class != outcome.Throttled {
		return
	}
	s.line("throttled", "", "", "")
	s.violated()
	if o.Hint.After == 0 {
		return
	}
	limits := 0
	for _, l := range s.policy.Limits {
		free := l.Unit == "tokens" && s.call.Cost["tokens"] == 0 // not counted by this limit
		if l.Counts(s.operation) && !free {
			limits++
			s.paused(l.Name, s.key(l.Name))
		}
	}
	if limits == 0 {
		s.paused("", "")
	}
}

// violated counts one violation for every throttle of an attempt that limits allowed.
func (s *script) violated() {
	charged := false
	for _, l := range s.policy.Limits {
		if l.Counts(s.operation) {
			charged = true
			s.seen.count("violations %s %s", s.operation, l.Name)
		}
	}
	if charged {
		s.line("violation", "", "", "")
	}
}

func (s *script) paused(limit, key string) {
	s.seen.count("pauses %s %s", s.operation, limit)
	s.line("paused", limit, key, "")
}

// key returns the call's key for a limit.
func (s *script) key(limit string) string {
	for _, l := range s.policy.Limits {
		if l.Name == limit && l.Scope != "" {
			return s.call.Keys[l.Scope]
		}
	}
	return ""
}

// sleeps is called before a wait, and may cancel the call.
func (s *script) sleeps(d time.Duration) {
	s.lookAtBreaker()
	leaves := d > 0 && s.r.IntN(5) == 0
	if leaves {
		s.cancel()
	}
	switch {
	case s.heldBack:
		s.heldBack, s.left = false, leaves
		return
	case !s.between:
		s.waiting += max(0, d)
		return
	}
	s.between, s.left = false, leaves
	s.seen.count("retries %s %v", s.operation, s.last)
	s.line("retrying", "", "", s.last.String())
}

// held counts a retry that was not sent yet. Only the event reports it.
func (s *script) held(e weir.HeldBack) {
	s.heldBack = e.After > 0
	s.seen.count("held back %s", s.operation)
	s.line("retry held back", "", "", "")
}

// lookAtBreaker is called wherever at most one change can have happened since the last call.
func (s *script) lookAtBreaker() {
	for _, v := range s.u.Look(0).Breakers {
		if was := s.phases[v.Key]; was != v.Phase {
			s.phases[v.Key] = v.Phase
			s.seen.count("breaker %v %v", was, v.Phase)
			s.seen.lines[""] = append(s.seen.lines[""], map[breaker.Phase]string{
				breaker.Open: "breaker opened", breaker.Closed: "breaker closed", breaker.HalfOpen: "breaker half-open",
			}[v.Phase])
		}
	}
}

// returned derives the result of the call from its error.
func (s *script) returned(ctx context.Context, err error) {
	result := s.last.String()
	gave, gaveUp := errors.AsType[*retry.GaveUpError](err)
	no, refused := errors.AsType[*weir.Refusal](err)
	tooMuch := errors.Is(err, weir.ErrTooMuch)
	switch {
	case refused:
		s.refused(no.Limit, string(no.Reason))
	case tooMuch:
		s.refused("tokens", "rate_limited")
	}
	switch {
	case s.left:
		result = "canceled"
	case gaveUp:
		why := observe.Why(gave.Why)
		s.seen.count("given up %s %s", s.operation, why)
		if refused {
			s.line("gave up", no.Limit, s.key(no.Limit), why)
		} else {
			s.line("gave up", "", "", why)
		}
	case s.attempts == 0 && ctx.Err() != nil:
		result = "canceled"
	case s.attempts == 0:
		result = "refused"
	}
	s.seen.count("calls %s %s", s.operation, result)
	s.seen.count("call durations %s", result)
}

func (s *script) refused(limit, reason string) {
	s.turn()
	s.seen.count("%s", strings.TrimSpace(fmt.Sprint("decisions ", s.operation, " ", reason, " ", limit)))
	s.line("refused", limit, s.key(limit), reason)
}

// virtual is a clock whose time advances only during a sleep.
type virtual struct {
	now    time.Duration
	sleeps func(time.Duration)
}

func (c *virtual) Now() time.Duration { return c.now }

func (c *virtual) Sleep(ctx context.Context, d time.Duration) error {
	c.sleeps(d)
	if d > 0 && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.now += max(0, d)
	return nil
}

func (c *virtual) WithTimeout(ctx context.Context, _ time.Duration, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (c *virtual) Deadline(context.Context) (time.Duration, bool) { return 0, false }

func (c *virtual) Wall(at time.Duration) time.Time { return time.Unix(0, int64(at)) }
