package breaker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// A story is a script, a line per event, run against both a State and a Breaker. Every line starts with its instant:
//
//	5s call failed 3       admit and report three calls
//	5s call failed after=90s
//	5s admit a             the call a is admitted by a closed breaker
//	5s probe a             the call a is admitted as a probe
//	5s a ok                the call a ends
//	5s refused 25s         a call is refused, with this wait
//	5s refused             a call is refused, with any wait
//	5s open | half-open | closed    the phase is this
//	5s force-open 1m | force-close | reset
type story struct {
	t       *testing.T
	cfg     breaker.Config
	now     time.Duration
	state   breaker.State
	br      *breaker.Breaker
	good    []time.Duration // successes since the phase began
	permits map[string]breaker.Ticket
}

func tell(t *testing.T, cfg breaker.Config, script string) {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, cfg: cfg, br: breaker.New("up", cfg, nil), permits: map[string]breaker.Ticket{}}
	for line := range strings.Lines(script) {
		if f := strings.Fields(line); len(f) > 0 {
			s.step(f)
			s.agree(line)
		}
	}
}

func (s *story) step(f []string) {
	s.t.Helper()
	s.now = s.duration(f[0])
	arg := append(f[2:], "")[0]
	switch f[1] {
	case "call":
		s.call(f[2:])
	case "admit", "probe":
		s.admit(arg, f[1] == "probe")
	case "refused":
		s.refused(arg)
	case "open", "half-open", "closed":
		if got := s.state.Phase.String(); got != f[1] {
			s.t.Fatalf("at %v: got %s, want %s", s.now, got, f[1])
		}
	case "force-open":
		s.state = s.state.ForceOpen(s.now, s.duration(arg))
		s.br.ForceOpen(s.now, s.duration(arg))
	case "force-close":
		s.state = s.state.ForceClose(s.now)
		s.br.ForceClose(s.now)
	case "reset":
		s.state = s.state.Reset(s.now)
		s.br.Reset(s.now)
	default:
		s.report(f[1], f[2:])
	}
}

func (s *story) call(f []string) {
	s.t.Helper()
	n := 1
	if len(f) > 1 && !strings.Contains(f[1], "=") {
		fmt.Sscan(f[1], &n)
	}
	for range n {
		s.admit("call", s.state.Phase != breaker.Closed)
		s.report("call", f)
	}
}

func (s *story) admit(name string, probe bool) {
	s.t.Helper()
	next, p, _, ok := s.state.Admit(s.now, s.cfg)
	q, _, bok := s.br.Admit(s.now)
	if !ok || p.Probe != probe {
		s.t.Fatalf("at %v: %s: got admitted %v, probe %v, want true, %v", s.now, name, ok, p.Probe, probe)
	}
	if p != q || ok != bok {
		s.t.Fatalf("at %v: the breaker gave %v %v, its state %v %v", s.now, q, bok, p, ok)
	}
	s.state, s.permits[name] = next, p
}

func (s *story) refused(arg string) {
	s.t.Helper()
	_, _, wait, ok := s.state.Admit(s.now, s.cfg)
	_, bwait, bok := s.br.Admit(s.now)
	want := s.duration(arg)
	if arg == "" {
		want = wait
	}
	if ok || bok || wait != want || bwait != want {
		s.t.Fatalf("at %v: got admitted %v, %v, wait %v, %v, want a refusal for %v", s.now, ok, bok, wait, bwait, want)
	}
}

func (s *story) report(name string, f []string) {
	s.t.Helper()
	p, ok := s.permits[name]
	if !ok {
		s.t.Fatalf("no call %q", name)
	}
	o := outcome.Outcome{Class: s.class(f[0])}
	for _, opt := range f[1:] {
		if after, ok := strings.CutPrefix(opt, "after="); ok {
			o.Hint = outcome.Hint{Said: true, After: s.duration(after)}
		}
	}
	if o.Class == outcome.OK && s.state.Phase == breaker.Closed && p.Gen == s.state.Gen {
		s.good = append(s.good, s.now)
	}
	next := s.state.Report(s.now, s.cfg, p, o, s.successes())
	if next.Phase != s.state.Phase {
		s.good = nil
	}
	s.state = next
	s.br.Report(s.now, p, o)
}

func (s *story) successes() int64 {
	n := int64(0)
	for _, at := range s.good {
		if s.now-at < s.cfg.WithDefaults().Window {
			n++
		}
	}
	return n
}

func (s *story) agree(line string) {
	s.t.Helper()
	v := s.br.Look(s.now)
	if v.Phase != s.state.Phase || v.Gen != s.state.Gen || v.Why != s.state.Why || v.Until != s.state.Until {
		s.t.Fatalf("after %q the breaker shows %+v, its state is %+v", line, v, s.state)
	}
}

func (s *story) duration(text string) time.Duration {
	s.t.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *story) class(text string) outcome.Class {
	s.t.Helper()
	for _, c := range outcome.Classes {
		if c.String() == text {
			return c
		}
	}
	s.t.Fatalf("no class %q", text)
	return 0
}
