package weirprom

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed1158cd35/weir/limit"
)

// fleetEverything lets a fleet have one of everything.
func fleetEverything(reg prometheus.Registerer) *Fleet {
	m := NewFleet(reg)
	fleet := limit.NewFleet(limit.NewMemory(nil), limit.FleetOptions{Events: m.Events()})
	fleet.Group("s3")
	m.Watch(fleet)
	put := perSecond("put", "", 10)
	e := m.Events()
	e.Called(limit.StoreCall{Group: "s3", Calls: 3, Granted: 3, Back: 2, Took: time.Millisecond, Limits: []limit.LimitCall{{Limit: &put, Units: 3, Leased: 4}}})
	e.Called(limit.StoreCall{Group: "s3", Calls: 3, Granted: 1, Took: time.Millisecond, Limits: []limit.LimitCall{{Limit: &put, Units: 1}}})
	e.Called(limit.StoreCall{Group: "s3", Calls: 1, Again: true, Err: errors.New("away")})
	e.Fallback(limit.FallbackEvent{Away: true})
	e.Fallback(limit.FallbackEvent{Away: true, Past: true, For: time.Second})
	e.Fallback(limit.FallbackEvent{For: time.Second, Spent: 7})
	m.FailedConditions("s3", 1)
	return m
}

func TestFleetCountsWhatTheStoreDid(t *testing.T) {
	m := fleetEverything(prometheus.NewPedanticRegistry())
	for name, c := range map[string]struct {
		got  prometheus.Collector
		want float64
	}{
		"granted":  {m.calls.WithLabelValues("s3", granted), 1},
		"short":    {m.calls.WithLabelValues("s3", short), 1},
		"error":    {m.calls.WithLabelValues("s3", failing), 1},
		"served":   {m.served.WithLabelValues("s3"), 4},
		"units":    {m.units.WithLabelValues("s3", "put"), 8},
		"leased":   {m.leased.WithLabelValues("s3", "put"), 4},
		"returned": {m.returned.WithLabelValues("s3"), 2},
		"repeats":  {m.repeats.WithLabelValues("s3"), 1},
		"alone":    {m.lone, 7},
		"away":     {m.activated, 1},
		"long":     {m.outlasted, 1},
	} {
		if got := testutil.ToFloat64(c.got); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestFleetForgetsAnUpstream(t *testing.T) {
	m := fleetEverything(prometheus.NewPedanticRegistry())
	m.Forget("s3")
	if n := testutil.CollectAndCount(m.calls) + testutil.CollectAndCount(m.units) + testutil.CollectAndCount(m.took); n != 0 {
		t.Errorf("%d series are left", n)
	}
}
