package why_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/calls"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe/why"
)

// seconds returns an upstream that allows one call a minute, and the Seconds that count it.
func seconds(t *testing.T) (*why.Seconds, *weir.Upstream) {
	s, p := new(why.Seconds), calls.Steady()
	p.Limits, p.MaxWait = []limit.Limit{calls.Rate("few", 1, time.Minute, 1)}, -1
	return s, calls.Open(t, p, weir.Options{Events: weir.Events{Counts: s.Counts}})
}

func there(string) bool { return true }

// The decisions of a second are found, with exact counts. A second in which every call proceeded immediately has no lines.
func TestASecondKnowsWhatWasDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, u := seconds(t)
		time.Sleep(time.Second)
		began := time.Now()
		refused := []int{0, 3, 0, 1, 7}
		_ = call(u, "first", nil)
		for i, n := range refused {
			for range n {
				_ = call(u, fmt.Sprint(i, n), nil)
			}
			time.Sleep(time.Second)
			s.Sample(time.Now(), there)
		}
		for i, n := range refused {
			second := began.Add(time.Duration(i) * time.Second)
			lines, ok := s.In(second, time.Now())
			if !ok || (len(lines) == 1) != (n > 0) {
				t.Fatalf("second %d: %v, %v", i, lines, ok)
			}
			if n > 0 {
				l := lines[0]
				if l.Upstream != "api" || l.Limit != "few" || l.Decision != "rate_limited" || l.N != uint64(n) || !l.From.Equal(second) || !l.To.Equal(second.Add(time.Second)) {
					t.Errorf("second %d: %+v, want %d refused", i, l, n)
				}
			}
		}
	})
}

// Seconds in the future, before the start, and too long ago are unknown.
func TestASecondThatNobodyKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, u := seconds(t)
		began := time.Now()
		time.Sleep(time.Minute)
		_ = call(u, "a", nil)
		_ = call(u, "b", nil)
		s.Sample(time.Now(), there)
		for name, c := range map[string]struct {
			at, now time.Time
			ok      bool
		}{
			"to come":    {time.Now(), time.Now(), false},
			"next":       {time.Now().Add(time.Second), time.Now(), false},
			"before":     {began.Add(-2 * time.Second), time.Now(), false},
			"known":      {began.Add(30 * time.Second), time.Now(), true},
			"still":      {began.Add(30 * time.Second), began.Add(30*time.Second + why.Remembered), true},
			"too old":    {began.Add(30 * time.Second), began.Add(31*time.Second + why.Remembered), false},
			"just begun": {began, time.Now(), true},
		} {
			if lines, ok := s.In(c.at, c.now); ok != c.ok || ok && len(lines) != 2 {
				t.Errorf("%s: %v, %v", name, lines, ok)
			}
		}
	})
}

// The number of lines is bounded. Seconds whose lines were dropped are unknown, not empty.
func TestSecondsAreBounded(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	synctest.Test(t, func(t *testing.T) {
		s, u := seconds(t)
		_ = call(u, "first", nil)
		began := time.Now()
		for range 1<<17 + 100 {
			_ = call(u, "x", nil)
			time.Sleep(10 * time.Millisecond)
			s.Sample(time.Now(), there)
		}
		if _, ok := s.In(began, time.Now()); ok {
			t.Error("the oldest second is known still")
		}
		if lines, ok := s.In(began.Add(10*time.Second), time.Now()); !ok || len(lines) < 100 {
			t.Errorf("%d lines, %v", len(lines), ok)
		}
		s.Sample(time.Now().Add(time.Second), func(string) bool { return false })
		if _, ok := s.In(time.Now(), time.Now().Add(2*time.Second)); !ok {
			t.Error("an upstream that left took its seconds along")
		}
	})
}

// BenchmarkSampleOfAThousandUpstreams measures a sample of a thousand idle upstreams.
func BenchmarkSampleOfAThousandUpstreams(b *testing.B) {
	s := new(why.Seconds)
	for i := range 1000 {
		p := calls.Steady()
		p.Limits, p.MaxWait = []limit.Limit{calls.Rate("few", 1, time.Hour, 1)}, -1
		u, err := weir.New(fmt.Sprint("up", i), p, weir.Options{Events: weir.Events{Counts: s.Counts}})
		if err != nil {
			b.Fatal(err)
		}
		for range 2 {
			_ = call(u, "x", nil)
		}
	}
	now := time.Now()
	for b.Loop() {
		now = now.Add(time.Second)
		s.Sample(now, there)
	}
}
