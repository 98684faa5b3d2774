package weirprom

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

// deliveriesEverything makes every metric of deliveries.
func deliveriesEverything(reg prometheus.Registerer) {
	d := NewDeliveries(reg, dead{})
	e := d.Events()
	of := &delivery.Delivery{Request: delivery.Request{Upstream: "ntfy"}}
	e.Ended(of, &delivery.Attempt{Class: outcome.Rejected})
	e.Dead("ntfy", delivery.Rejected, 1)
	e.Lost(of)
	d.Accepted(time.Millisecond)
	d.Refused("ntfy", "full")
}

// dead is a queue that holds one dead letter.
type dead struct{}

func (dead) Counts(context.Context) ([]delivery.Count, error) {
	return []delivery.Count{{Upstream: "ntfy", Status: delivery.Failed, N: 1, Oldest: time.Now()}}, nil
}

func (dead) LogSize() int64 { return 1 }
