package breaker_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

var (
	ok     = outcome.Outcome{Class: outcome.OK}
	failed = outcome.Outcome{Class: outcome.Failed}

	// five opens after five failures. The tests of the default config are in default_test.go.
	five, _ = breaker.Schedule("five-a-minute")
)

func fail(br *breaker.Breaker, now time.Duration, n int) {
	for range n {
		p, _, _ := br.Admit(now)
		br.Report(now, p, failed)
	}
}

type heard struct {
	mu   sync.Mutex
	list []breaker.Change
}

func (h *heard) add(c breaker.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, c)
}

// inOrder fails the test unless every change starts in the phase where the last one ended.
func (h *heard) inOrder(t *testing.T) {
	t.Helper()
	at := breaker.Closed
	gen := uint32(0)
	for i, c := range h.list {
		if c.From != at || c.Gen <= gen {
			t.Fatalf("change %d is %+v after phase %v of generation %d", i, c, at, gen)
		}
		at, gen = c.To, c.Gen
	}
}

func TestOneProbeAmongAThousand(t *testing.T) {
	const periods = 20
	br := breaker.New("up", five, nil)
	fail(br, 0, 5)
	for period := range periods {
		now := time.Duration(period+1) * 30 * time.Second
		var probes atomic.Int32
		var probe breaker.Ticket
		crowd(1000, func(int) {
			if p, _, ok := br.Admit(now); ok {
				probes.Add(1)
				probe = p // a data race if there were two
			}
		})
		if n := probes.Load(); n != 1 || !probe.Probe {
			t.Fatalf("period %d: got %d probes, want 1", period, n)
		}
		br.Report(now, probe, failed)
	}
}

// crowd runs f n times concurrently.
func crowd(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func TestProbeWhoseGoroutineEndsIsReplacedAtItsDeadline(t *testing.T) {
	br := breaker.New("up", breaker.Config{Failures: 5, Successes: 1, Open: 30 * time.Second}, nil)
	fail(br, 0, 5)
	crowd(1, func(int) {
		br.Admit(30 * time.Second)
		runtime.Goexit()
	})
	if _, _, ok := br.Admit(60*time.Second - 1); ok {
		t.Error("admitted a second probe before the deadline of the first")
	}
	p, _, admitted := br.Admit(60 * time.Second)
	if !admitted || !p.Probe {
		t.Fatal("no probe after the deadline of the lost one")
	}
	br.Report(61*time.Second, p, ok)
	if v := br.Look(61 * time.Second); v.Phase != breaker.Closed {
		t.Errorf("got %v, want closed", v.Phase)
	}
}

func TestManyFailuresAtOnceOpenOnce(t *testing.T) {
	var h heard
	br := breaker.New("up", five, h.add)
	permit, _, _ := br.Admit(0)
	crowd(64, func(int) {
		for range 1000 {
			br.Report(time.Second, permit, failed)
		}
	})
	if v := br.Look(time.Second); v.Phase != breaker.Open || v.Gen != permit.Gen+1 {
		t.Errorf("got %v of generation %d, want open of generation %d", v.Phase, v.Gen, permit.Gen+1)
	}
	if len(h.list) != 1 {
		t.Errorf("got %d changes, want 1: %v", len(h.list), h.list)
	}
}

func TestNoFailureIsLostInACrowd(t *testing.T) {
	br := breaker.New("up", breaker.Config{Failures: 64_001}, nil)
	crowd(64, func(int) { fail(br, time.Second, 1000) })
	if v := br.Look(time.Second); v.Failed != 64_000 || v.Phase != breaker.Closed {
		t.Errorf("got %d failures, %v, want 64000, closed", v.Failed, v.Phase)
	}
	fail(br, time.Second, 1)
	if v := br.Look(time.Second); v.Phase != breaker.Open {
		t.Errorf("got %v, want open", v.Phase)
	}
}

func TestNoSuccessIsLostInACrowd(t *testing.T) {
	br := breaker.New("up", breaker.Config{Share: 0.5}, nil)
	crowd(64, func(int) {
		for range 100 {
			p, _, _ := br.Admit(time.Second)
			br.Report(time.Second, p, ok)
		}
	})
	fail(br, time.Second, 6399)
	if v := br.Look(time.Second); v.Phase != breaker.Closed {
		t.Fatalf("opened at a share of %d in %d", v.Failed, v.Failed+6400)
	}
	fail(br, time.Second, 1)
	if v := br.Look(time.Second); v.Why != breaker.FailureShare {
		t.Errorf("got %v for %v, want open for the share", v.Phase, v.Why)
	}
}

func TestCallbackMayUseTheBreaker(t *testing.T) {
	var seen []string
	var br *breaker.Breaker
	br = breaker.New("up", five, func(c breaker.Change) {
		seen = append(seen, fmt.Sprint(c.From, " to ", c.To, ": ", c.Why))
		if v := br.Look(c.At); v.Key != "up" {
			t.Errorf("looked at %q", v.Key)
		}
		switch c.To {
		case breaker.Open:
			p, _, _ := br.Admit(c.Until) // changes the phase from within
			br.Report(c.Until, p, outcome.Outcome{Class: outcome.Rejected})
		case breaker.HalfOpen:
			br.Reset(c.At)
		}
	})
	fail(br, 0, 5)
	want := []string{
		"closed to open: too many failures",
		"open to half-open: open time over",
		"half-open to closed: reset",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

func TestCallbackThatPanicsIsCalledAgain(t *testing.T) {
	calls := 0
	br := breaker.New("up", five, func(breaker.Change) {
		calls++
		panic("no")
	})
	for range 2 {
		func() {
			defer func() { _ = recover() }()
			br.Reset(0)
		}()
	}
	if calls != 2 {
		t.Errorf("got %d calls, want 2", calls)
	}
}

func TestCallbackThatHangsHoldsUpNobodyElse(t *testing.T) {
	var h heard
	hanging, release := make(chan bool), make(chan bool)
	br := breaker.New("up", five, func(c breaker.Change) {
		if c.Gen == 1 {
			hanging <- true
			<-release
		}
		h.add(c)
	})
	var wg sync.WaitGroup
	wg.Go(func() { fail(br, 0, 5) })
	<-hanging
	for i := range 10 {
		br.Reset(time.Duration(i))
		fail(br, time.Duration(i), 5)
	}
	close(release)
	wg.Wait()
	if len(h.list) != 21 {
		t.Errorf("got %d changes, want 21", len(h.list))
	}
	h.inOrder(t)
}

func TestChangesAreToldInOrder(t *testing.T) {
	var h heard
	br := breaker.New("up", breaker.Config{Consecutive: 1, Successes: 1, Open: time.Nanosecond}, h.add)
	var clock atomic.Int64
	crowd(32, func(i int) {
		for j := range 500 {
			now := time.Duration(clock.Add(1))
			if p, _, admitted := br.Admit(now); admitted {
				br.Report(now, p, outcome.Outcome{Class: outcome.Classes[(i+j)%len(outcome.Classes)]})
			}
		}
	})
	if len(h.list) < 100 {
		t.Errorf("only %d changes", len(h.list))
	}
	h.inOrder(t)
}

func TestProbesAreNoChanges(t *testing.T) {
	var h heard
	br := breaker.New("up", five, h.add)
	fail(br, 0, 5)
	br.Admit(30 * time.Second) // lost
	for range 2 {
		p, _, _ := br.Admit(60 * time.Second)
		br.Report(61*time.Second, p, ok)
	}
	want := []breaker.Change{
		{"up", breaker.Closed, breaker.Open, breaker.TooManyFailures, 0, 30 * time.Second, 1},
		{"up", breaker.Open, breaker.HalfOpen, breaker.OpenTimeOver, 30 * time.Second, 60 * time.Second, 2},
		{"up", breaker.HalfOpen, breaker.Closed, breaker.ProbesSucceeded, 61 * time.Second, 0, 5},
	}
	if !slices.Equal(h.list, want) {
		t.Errorf("got  %+v\nwant %+v", h.list, want)
	}
}

func TestStaleSuccessesAreNoPartOfTheShare(t *testing.T) {
	br := breaker.New("up", breaker.Config{Share: 0.5}, nil)
	stale, _, _ := br.Admit(0)
	br.Reset(0)
	for range 100 {
		br.Report(0, stale, ok)
	}
	if fail(br, 0, 20); br.Look(0).Phase != breaker.Open {
		t.Error("stale successes kept it closed")
	}
}

func TestZeroBreakerWorks(t *testing.T) {
	var br breaker.Breaker
	fail(&br, 0, 19)
	if v := br.Look(0); v.Phase != breaker.Closed || v.Failed != 19 {
		t.Errorf("got %v with %d failures, want closed with 19", v.Phase, v.Failed)
	}
	fail(&br, 0, 1)
	if v := br.Look(600 * time.Millisecond); v.Phase != breaker.Open || v.Wait != 400*time.Millisecond {
		t.Errorf("got %v, wait %v, want open, 400ms", v.Phase, v.Wait)
	}
}

func TestGoodCallsAllocateNothing(t *testing.T) {
	for name, c := range map[string]breaker.Config{"default": {}, "count": five, "share": {Share: 0.5}, "row": {Consecutive: 5}} {
		br := breaker.New("up", c, nil)
		br.Admit(0)
		n := testing.AllocsPerRun(100, func() {
			for _, class := range []outcome.Class{outcome.OK, outcome.Rejected, outcome.Canceled, outcome.Throttled} {
				p, _, _ := br.Admit(time.Second)
				br.Report(time.Second, p, outcome.Outcome{Class: class})
			}
		})
		if n != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, n)
		}
	}
}

func TestValidateReportsEveryMistake(t *testing.T) {
	if err := (breaker.Config{}).Validate(); err != nil {
		t.Errorf("the zero Config: %v", err)
	}
	if err := (breaker.Config{Open: time.Hour}).Validate(); err != nil {
		t.Errorf("a long open time: %v", err)
	}
	err := breaker.Config{
		Failures: -1, Consecutive: -2, Share: 1.5, MinCalls: -3, Successes: -4,
		ConsecutiveFor: -time.Hour, Window: -time.Second, Open: -time.Minute, MaxOpen: -time.Hour, ProbeTimeout: -1,
	}.Validate()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{
		"failures -1:", "consecutive -2:", "consecutive for -1h0m0s:", "share 1.5:", "min calls -3:", "successes -4:",
		"window -1s:", "open -1m0s:", "max open -1h0m0s:", "probe timeout -1ns:",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

func TestNamesOfUnknownValues(t *testing.T) {
	if got := breaker.Phase(9).String() + breaker.Cause(99).String(); got != "unknownunknown" {
		t.Errorf("got %q", got)
	}
}
