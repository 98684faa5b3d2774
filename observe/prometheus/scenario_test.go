package weirprom

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

var update = flag.Bool("update", false, "write what the scenario gives to testdata")

// The scenario produces the recorded series, values, buckets and native buckets.
func TestTheScenarioGivesWhatItAlwaysGave(t *testing.T) {
	const file = "testdata/scenario.txt"
	var got string
	synctest.Test(t, func(t *testing.T) { got = scenario(t) })
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(b), "\n")
	for _, line := range strings.Split(got, "\n") {
		if i := slices.Index(want, line); i >= 0 {
			want = slices.Delete(want, i, i+1)
		} else {
			t.Errorf("new:  %s", line)
		}
	}
	for _, line := range want {
		t.Errorf("gone: %s", line)
	}
}

// A play is a running scenario.
type play struct {
	t *testing.T
	u *weir.Upstream
}

func scenario(t *testing.T) string {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	s := play{t: t}
	policy := weir.Policy{
		Operations: []weir.Operation{{Name: "put"}, {Name: "list"}},
		Limits: []limit.Limit{
			perSecond("all", "", 5),
			{Name: "tenant", Scope: "tenant", Unit: "tokens", Rate: bucket.Rate{Amount: 20, Per: time.Second}, Operations: []string{"put"}},
			{Name: "day", Unit: "pages", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 3}, Every: bucket.Day, Operations: []string{"list"}},
		},
		Breaker: breaker.Config{Failures: 3, Open: 10 * time.Second},
		Retry:   retry.Config{Attempts: 3, Jitter: retry.NoJitter},
		MaxWait: 2 * time.Second,
	}
	s.u = newUpstream(t, "api", policy, weir.Options{Events: weir.Tee(m.Events(), weir.Events{}), Gates: []weir.Gate{gate{}}})
	m.Watch(s.u)
	s.endings()
	s.refusals()
	s.calls()

	policy.Operations = policy.Operations[:1]
	policy.Limits[0].Amount = 50
	policy.Limits = append(policy.Limits[:1], perSecond("new", "tenant", 1))
	if err := s.u.Set(policy); err != nil {
		t.Fatal(err)
	}
	s.endings()
	s.calls()

	other := newUpstream(t, "other", weir.Policy{Concurrency: weir.Concurrency{Limit: 1}, MaxWait: -1, Retry: policy.Retry}, weir.Options{Events: m.Events()})
	m.Watch(other)
	s.u = other
	s.endings()
	held, _ := try(other, weir.Call{})
	s.try(weir.Call{})
	held.Report(outcome.Outcome{Class: outcome.OK})
	s.u.Drain()
	s.calls()
	return told(t, reg)
}

type gate struct{}

func (gate) Admit(_ context.Context, c weir.Call) (func(outcome.Outcome), error) {
	switch c.ID {
	case "no":
		return nil, errors.New("no")
	case "refused":
		return nil, &weir.Refusal{Upstream: "api", Reason: weir.ConcurrencyLimited, Limit: "a gate"}
	case "odd":
		return nil, &weir.Refusal{Upstream: "api", Reason: "odd"}
	}
	return nil, nil
}

func (s *play) try(c weir.Call) { s.report(outcome.Outcome{Class: outcome.OK}, 0, c) }

// report makes an attempt and reports its outcome after a delay.
func (s *play) report(o outcome.Outcome, after time.Duration, c weir.Call) {
	p, d := try(s.u, c)
	time.Sleep(after)
	if d.Allowed {
		p.Report(o)
	}
}

// endings makes attempts with every result and many durations.
func (s *play) endings() {
	ways := []outcome.Outcome{{Class: outcome.Rejected, Unsent: true}, {Class: outcome.OK, Usage: map[string]int64{"tokens": 2}}}
	for _, c := range outcome.Classes {
		ways = append(ways, outcome.Outcome{Class: c, Code: "code"})
	}
	for i, o := range ways {
		for _, op := range []string{"", "put", "list", "nobody's"} {
			time.Sleep(time.Second)
			s.report(o, time.Duration(i)*17*time.Millisecond, weir.Call{Operation: op})
		}
	}
	for _, d := range []time.Duration{0, 1, 999, 1000, time.Microsecond, time.Millisecond, time.Millisecond + 1, 2500 * time.Microsecond, 10 * time.Millisecond, 9999999, time.Second, time.Second + 1, time.Minute, time.Minute + 1, time.Hour} {
		time.Sleep(time.Second)
		s.report(outcome.Outcome{Class: outcome.OK}, d, weir.Call{Operation: "put", Keys: map[string]string{"tenant": "a"}})
	}
	time.Sleep(time.Minute)
}

// refusals makes attempts that wait or are refused.
func (s *play) refusals() {
	ctx := s.t.Context()
	for range 12 { // immediately, after a wait, and never
		go func() {
			if p, err := s.u.Acquire(ctx, weir.Call{Operation: "put", Cost: map[string]int64{"tokens": 4}}); err == nil {
				time.Sleep(3 * time.Millisecond)
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		}()
		time.Sleep(70 * time.Millisecond)
	}
	for range 9 {
		s.try(weir.Call{})
	}
	time.Sleep(time.Minute)
	s.try(weir.Call{Operation: "put", Cost: map[string]int64{"tokens": 1000}})
	for range 5 {
		s.try(weir.Call{Operation: "list", Cost: map[string]int64{"pages": 1}})
	}
	time.Sleep(time.Minute)
	for _, id := range []string{"no", "refused", "odd"} {
		_, _ = s.u.Acquire(ctx, weir.Call{ID: id})
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	for range 7 {
		if p, err := s.u.Acquire(short, weir.Call{}); err == nil {
			p.Report(outcome.Outcome{Class: outcome.OK})
		}
	}
	time.Sleep(time.Minute)
	s.report(outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: 4 * time.Second}}, time.Millisecond, weir.Call{Operation: "put"})
	s.try(weir.Call{Operation: "put"})
	time.Sleep(time.Minute)
	for range 5 {
		s.report(outcome.Outcome{Class: outcome.Failed}, time.Millisecond, weir.Call{Operation: "put"})
	}
	time.Sleep(time.Minute)
	s.report(outcome.Outcome{Class: outcome.OK}, time.Millisecond, weir.Call{Operation: "put"})
}

// calls makes complete calls: retried, given up, canceled, refused.
func (s *play) calls() {
	classes := [][]outcome.Class{
		{outcome.OK}, {outcome.Failed, outcome.OK}, {outcome.Throttled, outcome.Throttled, outcome.OK}, {outcome.Failed, outcome.Failed, outcome.Failed},
		{outcome.Rejected}, {outcome.Canceled}, {outcome.Unknown, outcome.OK}, {outcome.OK}, {outcome.OK},
	}
	for i, ends := range classes {
		for _, op := range []string{"put", "list", ""} {
			n := 0
			_, _ = weir.Do(s.t.Context(), s.u, weir.Call{Operation: op, Safe: i != 3, Cost: map[string]int64{"tokens": 1}}, func(context.Context) (int, error) {
				time.Sleep(time.Duration(10*n+i) * time.Millisecond)
				n++
				if c := ends[min(n, len(ends))-1]; c != outcome.OK {
					return 0, ended(c)
				}
				return 0, nil
			})
		}
		time.Sleep(20 * time.Second)
	}
	left, cancel := context.WithCancel(s.t.Context())
	cancel()
	_, _ = weir.Do(left, s.u, weir.Call{}, func(context.Context) (int, error) { return 0, nil })
	left, cancel = context.WithTimeout(s.t.Context(), 10*time.Millisecond)
	defer cancel()
	_, _ = weir.Do(left, s.u, weir.Call{Safe: true}, func(context.Context) (int, error) { return 0, ended(outcome.Failed) })
	_, _ = weir.Do(s.t.Context(), s.u, weir.Call{ID: "refused"}, func(context.Context) (int, error) { return 0, nil })
	time.Sleep(time.Minute)
}

// ended is the error of an attempt with this outcome.
type ended outcome.Class

func (e ended) Error() string            { return outcome.Class(e).String() }
func (e ended) Outcome() outcome.Outcome { return outcome.Outcome{Class: outcome.Class(e)} }

// told formats the series that events updated, one line for each value.
func told(t *testing.T, reg prometheus.Gatherer) string {
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "weir_in_flight") || f.GetType() == dto.MetricType_GAUGE {
			continue
		}
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += fmt.Sprintf(" %s=%q", l.GetName(), l.GetValue())
			}
			if h := m.GetHistogram(); h != nil {
				fmt.Fprint(&text, histogramText(name, h))
			} else {
				fmt.Fprintf(&text, "%s: %v\n", name, m.GetCounter().GetValue())
			}
		}
	}
	return text.String()
}

func histogramText(name string, h *dto.Histogram) string {
	text := fmt.Sprintf("%s: %d in %.9f\n%s: at most", name, h.GetSampleCount(), h.GetSampleSum(), name)
	for _, b := range h.GetBucket() {
		text += fmt.Sprintf(" %v:%d", b.GetUpperBound(), b.GetCumulativeCount())
	}
	text += fmt.Sprintf("\n%s: native schema %d zero %d above %v", name, h.GetSchema(), h.GetZeroCount(), h.GetZeroThreshold())
	at, n, next := int32(0), int64(0), 0
	for _, span := range h.GetPositiveSpan() {
		at += span.GetOffset()
		for range span.GetLength() {
			n += h.GetPositiveDelta()[next]
			if n > 0 {
				text += fmt.Sprintf(" %d:%d", at, n)
			}
			at, next = at+1, next+1
		}
	}
	return text + "\n"
}
