package weirprom

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// fleetEverything produces every event of a fleet.
func fleetEverything(reg prometheus.Registerer) *Fleet {
	m := NewFleet(reg)
	members := fleet.New(fleet.NewMemory(nil), fleet.Options{Events: m.Events()})
	members.Group("s3")
	m.Watch(members)
	put := perSecond("put", "", 10)
	e := m.Events()
	e.Called(fleet.StoreCall{Group: "s3", Calls: 3, Granted: 3, Back: 2, Took: time.Millisecond, Limits: []fleet.LimitCall{{Limit: &put, Units: 3, Leased: 4}}})
	e.Called(fleet.StoreCall{Group: "s3", Calls: 3, Granted: 1, Took: time.Millisecond, Limits: []fleet.LimitCall{{Limit: &put, Units: 1}}})
	e.Called(fleet.StoreCall{Group: "s3", Calls: 1, Again: true, Err: errors.New("away")})
	e.Fallback(fleet.FallbackEvent{Away: true})
	e.Fallback(fleet.FallbackEvent{Away: true, Past: true, For: time.Second})
	e.Fallback(fleet.FallbackEvent{For: time.Second, Spent: 7})
	m.Requested("s3", Requests{Sent: 4, Failed: 1, Throttled: 2})
	m.Requested("s3", Requests{Sent: 1})
	m.Reached()
	m.Cold("s3", true)
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

		"met":       {m.conditions.WithLabelValues("s3"), 1},
		"throttled": {m.throttled.WithLabelValues("s3"), 2},
	} {
		if got := testutil.ToFloat64(c.got); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// Durations and request numbers of store calls are histograms.
func TestCallsToTheStoreAreDistributions(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	fleetEverything(reg)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			got[f.GetName()] = fmt.Sprintf("%d, sum %.3f", h.GetSampleCount(), h.GetSampleSum())
		}
	}
	want := map[string]string{"weir_store_call_duration_seconds": "2, sum 0.002", "weir_store_call_requests": "2, sum 5.000"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFleetForgetsAnUpstream(t *testing.T) {
	m := fleetEverything(prometheus.NewPedanticRegistry())
	m.Forget("s3")
	if n := testutil.CollectAndCount(m.calls) + testutil.CollectAndCount(m.units) + testutil.CollectAndCount(m.took) + testutil.CollectAndCount(m.requests) + testutil.CollectAndCount(m.throttled); n != 0 {
		t.Errorf("%d series are left", n)
	}
}

func TestWhatLeasesHoldBackIsAMetric(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	shared := perSecond("put", "", 100)
	own := perSecond("get", "", 100)
	own.Local = true
	u, err := weir.New("s3", weir.Policy{Limits: []limit.Limit{shared, own}}, weir.Options{Fleet: fleet.New(fleet.NewMemory(nil), fleet.Options{Lease: 250 * time.Millisecond})})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	m.Watch(u)
	check(t, reg, 26, "weir_limit_reserved_units", "put", "s3")
	check(t, reg, 74, "weir_limit_units_max", "put", "s3")
	check(t, reg, 0, "weir_limit_reserved_units", "get", "s3")
}
