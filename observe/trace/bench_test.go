package trace

import (
	"context"
	"net/http"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

type nowhere struct{}

func (nowhere) Export(context.Context, []Span) error { return nil }

// BenchmarkCall measures the cost of a call without observers and with several kinds of tracing. For a call with a note, the
// header of the trace is written for the upstream.
func BenchmarkCall(b *testing.B) {
	tracer := func(o Options) *Tracer {
		o.To = nowhere{}
		t := New(o)
		b.Cleanup(func() { t.Close(context.Background()) })
		return t
	}
	for _, c := range []struct {
		name   string
		tracer *Tracer
		noted  bool
		events weir.Events
	}{
		{name: "off"},
		{name: "kept=0", tracer: tracer(Options{Share: -1, Each: -1}), noted: true},
		{name: "kept=5%/alone", tracer: tracer(Options{})},
		{name: "kept=5%/W3C", tracer: tracer(Options{}), noted: true},
		{name: "kept=5%/W3C+X-Ray", tracer: tracer(Options{XRay: true}), noted: true},
		{name: "kept=100%/W3C", tracer: tracer(Options{Share: 1}), noted: true},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.tracer != nil {
				c.events = c.tracer.Events()
			}
			u, err := weir.New("api", weir.Policy{}, weir.Options{Events: c.events})
			if err != nil {
				b.Fatal(err)
			}
			in := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
			out := make(http.Header, 8)
			b.ReportAllocs()
			for b.Loop() {
				call := weir.Call{ID: "1z4qeq0q5rsr7"}
				var of *Call
				if c.noted {
					of = c.tracer.Begin(readParent(in, c.tracer.o.XRay), About{Kind: Server, Name: "GET api", Method: "GET"})
					call.Note = of
				}
				p, err := u.Acquire(b.Context(), call)
				if err != nil {
					b.Fatal(err)
				}
				a := of.Next()
				a.Header(out)
				a.Answered(http.StatusOK)
				p.Report(outcome.Outcome{Class: outcome.OK})
				of.End(Answer{Status: http.StatusOK})
			}
		})
	}
}
