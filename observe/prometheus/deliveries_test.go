package weirprom

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

func deliveriesEverything(reg prometheus.Registerer) {
	d := NewDeliveries(reg, dead{})
	d.Holds(func() delivery.Held { return delivery.Held{Owed: &delivery.Pile{N: 1}, Bodies: &delivery.Pile{N: 1}} })
	e := d.Events()
	of := &delivery.Delivery{Request: delivery.Request{Upstream: "ntfy"}}
	e.Ended(of, &delivery.Attempt{Class: outcome.Rejected})
	e.Dead("ntfy", delivery.Rejected, 1)
	e.Left("ntfy", 1)
	e.Lost(of)
	d.Accepted(time.Millisecond)
	d.Refused("ntfy", "full")
}

type dead struct{}

func (dead) Counts(context.Context) ([]delivery.Count, error) {
	return []delivery.Count{
		{Upstream: "ntfy", Status: delivery.Failed, N: 1, Oldest: time.Now()}, {Upstream: "ntfy", Status: delivery.Queued, N: 1, Waiting: time.Now()},
	}, nil
}

func (dead) LogSize() int64 { return 1 }

// Metrics of a worker's callbacks and bodies appear after its first look. Ages are as of the scrape.
func TestWhatAWorkerHolds(t *testing.T) {
	reg := prometheus.NewRegistry()
	d := NewDeliveries(reg, dead{})
	var held delivery.Held
	d.Holds(func() delivery.Held { return held })
	gauges := func() map[string]float64 {
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		is := make(map[string]float64)
		for _, f := range all {
			is[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		return is
	}
	for name := range gauges() {
		if strings.HasPrefix(name, "weir_delivery_bod") || strings.HasPrefix(name, "weir_delivery_callback") {
			t.Errorf("%s before anybody has looked", name)
		}
	}
	held = delivery.Held{Owed: &delivery.Pile{}, Bodies: &delivery.Pile{N: 2, Bytes: 3 << 20, Oldest: time.Now().Add(-time.Hour)}}
	is := gauges()
	for name, want := range map[string]float64{"weir_delivery_callbacks_pending": 0, "weir_delivery_callback_oldest_seconds": 0, "weir_delivery_bodies": 2, "weir_delivery_bodies_bytes": 3 << 20, "weir_delivery_body_oldest_seconds": 3600} {
		if got, ok := is[name]; !ok || got < want || got > want+60 {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, want)
		}
	}
}

type late struct{ dead }

func (late) Counts(context.Context) ([]delivery.Count, error) {
	return []delivery.Count{
		{Upstream: "ntfy", Status: delivery.Created, N: 1, Waiting: time.Now().Add(-time.Hour)},
		{Upstream: "ntfy", Status: delivery.Queued, N: 2, Waiting: time.Now().Add(-2 * time.Hour)},
		{Upstream: "ntfy", Status: delivery.Processing, N: 2},
	}, nil
}

func TestOldestWaitingDeliveryIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		NewDeliveries(reg, late{})
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if f.GetName() == "weir_delivery_waiting_oldest_seconds" {
				if m := f.GetMetric(); len(m) != 1 || m[0].GetGauge().GetValue() != 7200 {
					t.Errorf("%v", m)
				}
				return
			}
		}
		t.Error("it is not there")
	})
}
