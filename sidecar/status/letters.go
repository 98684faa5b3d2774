package status

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// Deliveries are the numbers of stored deliveries, by upstream.
type Deliveries struct {
	Error     string    `json:"error,omitempty"` // why they are unknown
	Upstreams []Letters `json:"upstreams"`
}

// Letters are the numbers of deliveries to an upstream, by status.
type Letters struct {
	Upstream    string    `json:"upstream"`
	Waiting     int64     `json:"waiting"`                // created or queued
	WaitingFrom time.Time `json:"waiting_since,omitzero"` // when the oldest waiting delivery was accepted
	Processing  int64     `json:"processing"`
	Completed   int64     `json:"completed"`
	Failed      int64     `json:"failed"` // dead letters
	FailedSince time.Time `json:"failed_since,omitzero"`
}

// Kept is the part of delivery.Queue with which operators handle deliveries.
type Kept interface {
	List(ctx context.Context, f delivery.Filter, cursor string, most int) (page []delivery.Delivery, next string, err error)
	Redrive(ctx context.Context, f delivery.Filter, most int) (int, error)
	Drop(ctx context.Context, f delivery.Filter, most int) (int, error)
}

var _ Kept = delivery.Queue(nil)

// counting bounds the time for counting deliveries.
const counting = 2 * time.Second

// Counted returns the present numbers of deliveries; nil if deliveries are not configured. It waits at most two
// seconds for the store.
func (p *Page) Counted(ctx context.Context) *Deliveries {
	if p.Counts == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, counting)
	defer cancel()
	counts, err := p.Counts(ctx)
	if err != nil {
		return &Deliveries{Error: err.Error()}
	}
	d := &Deliveries{Upstreams: []Letters{}}
	for _, c := range counts {
		if n := len(d.Upstreams); n == 0 || d.Upstreams[n-1].Upstream != c.Upstream {
			d.Upstreams = append(d.Upstreams, Letters{Upstream: c.Upstream})
		}
		l := &d.Upstreams[len(d.Upstreams)-1]
		switch c.Status {
		case delivery.Created, delivery.Queued:
			l.Waiting += c.N
			if !c.Waiting.IsZero() && (l.WaitingFrom.IsZero() || c.Waiting.Before(l.WaitingFrom)) {
				l.WaitingFrom = c.Waiting
			}
		case delivery.Processing:
			l.Processing = c.N
		case delivery.Completed:
			l.Completed = c.N
		case delivery.Failed:
			l.Failed, l.FailedSince = c.N, c.Oldest
		}
	}
	return d
}

func (d *Deliveries) print(w io.Writer) {
	if d.Error != "" {
		fmt.Fprintf(w, "deliveries: unknown, the store does not answer: %s\n", d.Error)
		return
	}
	if len(d.Upstreams) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nDELIVERIES\tWAITING\tOLDEST\tIN FLIGHT\tDELIVERED\tDEAD LETTERS\tOLDEST")
	for _, l := range d.Upstreams {
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%d\t%d\t%s\n", l.Upstream, l.Waiting, ageOf(l.WaitingFrom), l.Processing, l.Completed, l.Failed, ageOf(l.FailedSince))
	}
	_ = t.Flush()
}

// ageOf returns how long ago something happened, as text; "-" if it did not.
func ageOf(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return time.Since(at).Round(time.Second).String()
}
