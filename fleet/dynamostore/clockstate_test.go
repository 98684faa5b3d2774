package dynamostore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The error of the machine's clock equals the table's lead.
func TestMeasuredClockReportsOffsetUncertaintyAndRoundTrip(t *testing.T) {
	const ahead = 660 * time.Millisecond
	for _, roundTrip := range []time.Duration{0, 20 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(func() time.Time { return time.Now().Add(ahead) })
				s := New(clientAt("http://fake", farClient{f, roundTrip}), "weir", Options{})
				defer s.Close()
				if k := s.ClockState(); k.Known {
					t.Fatalf("before any response: %+v", k)
				}
				time.Sleep(345 * time.Millisecond)
				if _, _, err := s.Load(context.Background(), "up", []string{"one"}); err != nil {
					t.Fatal(err)
				}
				if k := s.ClockState(); !k.Known || !k.Rough || (k.Ahead-ahead).Abs() > k.Uncertainty {
					t.Errorf("after one response: %+v, want rough bounds around %v", k, ahead)
				}
				if err := s.MeasureClock(context.Background()); err != nil {
					t.Fatal(err)
				}
				k := s.ClockState()
				if !k.Known || k.Rough || (k.Ahead-ahead).Abs() > k.Uncertainty || k.Uncertainty > roundTrip+60*time.Millisecond || k.RoundTrip != roundTrip {
					t.Errorf("measured: %+v, want %v ahead, a round trip of %v, and to know the clock within that and 60ms", k, ahead, roundTrip)
				}
			})
		})
	}
}
