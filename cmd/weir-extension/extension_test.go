package main

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
)

// watched is a store that counts taken and returned units.
type watched struct {
	fleet.Store
	mu       sync.Mutex
	took     int64 // requests with claims
	out      int64 // granted units that were not returned, without debts
	flushing atomic.Bool
	stands   atomic.Bool     // the store stops responding
	left     []time.Duration // timeouts of requests during a flush
}

func (s *watched) Take(ctx context.Context, a *fleet.Ask) error {
	s.mu.Lock()
	if at, ok := ctx.Deadline(); ok && s.flushing.Load() {
		s.left = append(s.left, time.Until(at))
	}
	s.mu.Unlock()
	if s.stands.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	err := s.Store.Take(ctx, a)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(a.Claims) > 0 {
		s.took++
	}
	if err == nil {
		for i := range a.Claims {
			s.out += a.Granted*a.Claims[i].Cost + a.Grants[i].Extra
		}
		for i := range a.Settle {
			s.out -= a.Settle[i].Back - a.Settle[i].Owe
		}
	}
	return err
}

func (s *watched) seen() (took, out int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took, s.out
}

// leases makes the function acquire until the extension holds leased units.
func (x *extension) leases(s *watched) {
	x.t.Helper()
	before, n := int64(0), 0
	for range 20_000 {
		if status, answer := x.acquires(); status != 200 {
			x.t.Fatalf("acquire: %d %s", status, answer)
		}
		took, _ := s.seen()
		if n++; took != before {
			before, n = took, 0
		}
		if n >= 3 {
			return
		}
	}
	x.t.Fatal("nothing is leased")
}

const soon = 10 * time.Minute // the deadline of an invocation that does not matter

func TestAnExtensionLives(t *testing.T) {
	l := newLambda(t)
	s := &watched{}
	x := begin(t, l, shared, func(of fleet.Store) fleet.Store { s.Store = of; return s }, nil)
	if status, answer := x.acquires(); status != 200 { // while the function starts
		t.Fatalf("%d %s", status, answer)
	}
	l.begins("one", time.Now().Add(soon))
	if l.name != "weir-extension" || !slices.Equal(l.subscribed, []string{"INVOKE", "SHUTDOWN"}) {
		t.Errorf("registered as %s for %q", l.name, l.subscribed)
	}
	x.leases(s)
	l.done("another")
	select {
	case <-l.asked:
		t.Fatal("it may be frozen while the function runs")
	default:
	}
	for tries := 1; ; tries++ {
		l.done("one")
		l.begins("one", time.Now().Add(soon)) // it has requested the next event, so all units are returned
		_, out := s.seen()
		if out == x.passed {
			break
		}
		if tries == 20 { // if the machine stalls for 50 ms, a flush times out
			t.Fatalf("of %d units %d were used when it was frozen", out, x.passed)
		}
		x.leases(s)
	}
	if status, answer := x.acquires(); status != 200 {
		t.Fatalf("after a freeze: %d %s", status, answer)
	}
	l.done("one")
	l.waits("it does not ask for what comes after that")
	l.events <- event{Type: shutdown, Reason: "spindown", Deadline: time.Now().Add(2 * time.Second).UnixMilli()}
	if err := <-x.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	x.ended <- nil
}

// A store that does not respond delays the end of an invocation by at most 50 ms.
func TestAFlushIsBounded(t *testing.T) {
	l := newLambda(t)
	s := &watched{}
	x := begin(t, l, shared, func(of fleet.Store) fleet.Store { s.Store = of; return s }, nil)
	l.begins("one", time.Now().Add(soon))
	for range 20 { // it also returns unused units without a flush, and may have done so before
		x.leases(s)
		s.flushing.Store(true)
		s.stands.Store(true)
		l.done("one")
		l.begins("one", time.Now().Add(soon)) // it has requested the next event although the store does not respond
		s.flushing.Store(false)
		s.stands.Store(false)
		s.mu.Lock()
		bounded := slices.ContainsFunc(s.left, func(d time.Duration) bool { return d <= flushing })
		s.mu.Unlock()
		if bounded && flushing == 50*time.Millisecond && strings.Contains(x.log.String(), "could not be returned") {
			return
		}
	}
	t.Errorf("asks of flushes may take %v; log: %s", s.left, x.log)
}

// thawing is the clock of a frozen sandbox, whose monotonic clock was frozen as well.
type thawing struct {
	clock.Clock
	frozen atomic.Int64
}

func (c *thawing) Wall(at time.Duration) time.Time {
	return c.Clock.Wall(at).Add(time.Duration(c.frozen.Load()))
}

// A sandbox that is frozen without a flush, because Lambda did not report the end, spends no units that it leased before.
func TestALeaseEndsWhileTheSandboxIsFrozen(t *testing.T) {
	l := newLambda(t)
	l.noTelemetry = true
	s, c := &watched{}, &thawing{Clock: clock.System}
	x := begin(t, l, shared, func(of fleet.Store) fleet.Store { s.Store = of; return s }, c)
	l.begins("one", time.Now().Add(soon))
	x.leases(s)
	before, _ := s.seen()
	c.frozen.Store(int64(10 * time.Minute))
	if status, answer := x.acquires(); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if took, _ := s.seen(); took == before {
		t.Error("a lease of ten minutes ago is spent")
	}
}

// Without the Telemetry API the extension does not delay the ends of invocations.
func TestWithoutTelemetryInvocationsAreNotHeldUp(t *testing.T) {
	l := newLambda(t)
	l.noTelemetry = true
	x := begin(t, l, shared, nil, nil)
	l.begins("one", time.Now().Add(soon))
	l.begins("two", time.Now().Add(soon))
	l.waits("it holds up the invocation")
	if !strings.Contains(x.log.String(), "units are not returned before a freeze") {
		t.Errorf("log: %s", x.log)
	}
}

// If Lambda does not report an end, only one invocation is delayed, to its deadline.
func TestAnEndThatIsNotToldIsWaitedForOnce(t *testing.T) {
	l := newLambda(t)
	begin(t, l, shared, nil, nil)
	l.begins("one", time.Now())
	l.begins("two", time.Now().Add(soon))
	l.waits("it holds up the second, too")
}

func TestErrorsOfLambdaDoNotEndIt(t *testing.T) {
	l := newLambda(t)
	l.broken = 3
	x := begin(t, l, shared, nil, nil)
	l.begins("one", time.Now().Add(soon))
	if status, answer := x.acquires(); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}

func TestAWrongFileIsToldToLambda(t *testing.T) {
	for name, file := range map[string]string{
		"a typing error":      strings.Replace(shared, "rate:", "rat:", 1),
		"not on this machine": strings.Replace(shared, "{listen: 127.0.0.1:0}", "{listen: '0.0.0.0:8082', open: true}", 1),
	} {
		l := newLambda(t)
		path := t.TempDir() + "/weir.yaml"
		writeFile(t, path, file)
		env := map[string]string{"AWS_LAMBDA_RUNTIME_API": strings.TrimPrefix(l.server.URL, "http://"), "WEIR_CONFIG": path}
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			ended <- run(ctx, world{args: []string{"weir-extension"}, out: &lines{}, env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
		}()
		var err error
		select {
		case err = <-ended:
		case <-l.asked: // it runs
			cancel()
			<-ended
		}
		cancel()
		if err == nil || !strings.HasPrefix(l.failure, "Extension.Configuration ") {
			t.Errorf("%s: %v, and Lambda is told %q", name, err, l.failure)
		}
	}
}

// If registration fails, the extension may end before it serves.
func TestItMayEndBeforeItServes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the server starts when the test allows it
	path := t.TempDir() + "/weir.yaml"
	writeFile(t, path, shared)
	log := &lines{}
	s, err := newServer(t.Context(), &world{env: func(name string) (string, bool) { return path, name == "WEIR_CONFIG" }}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	for range 1000 {
		runtime.Gosched()
	}
	if log.String() != "" {
		t.Error(log)
	}
}

func TestOutsideOfLambdaItSaysWhatItIs(t *testing.T) {
	err := run(t.Context(), world{args: []string{"weir-extension"}, out: &lines{}, env: func(string) (string, bool) { return "", false }})
	if err == nil || !strings.Contains(err.Error(), "/opt/extensions") || errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
