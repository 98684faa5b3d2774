package observe_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/observe/logs"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/outcome"
)

// BenchmarkObserved measures the cost of observing a call: without observers ("bare"), and with Prometheus with native buckets
// and logs.
func BenchmarkObserved(b *testing.B) {
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	for _, observed := range []struct {
		name string
		make func() (weir.Events, func(*weir.Upstream))
	}{
		{"bare", func() (weir.Events, func(*weir.Upstream)) { return weir.Events{}, func(*weir.Upstream) {} }},
		{"on", func() (weir.Events, func(*weir.Upstream)) {
			m := weirprom.New(prometheus.NewRegistry())
			return weir.Tee(m.Events(), logs.Options{EachSecond: 100}.Events(log)), m.Watch
		}},
	} {
		for _, what := range []struct {
			name   string
			amount int64
			call   func(*weir.Upstream, *weir.Permit)
		}{
			{"decision", 1 << 40, decide},
			{"refusal", 1, decide},
			{"do", 1 << 40, do},
			{"failure", 1 << 40, fail},
		} {
			open := func(b *testing.B) *weir.Upstream {
				events, watch := observed.make()
				rate := bucket.Rate{Amount: what.amount, Per: 1000 * time.Hour}
				u, err := weir.New("api", weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: rate}}, MaxWait: -1}, weir.Options{Events: events})
				if err != nil {
					b.Fatal(err)
				}
				watch(u)
				what.call(u, new(weir.Permit)) // creates the series, and takes the only unit of a limit that refuses
				b.ReportAllocs()
				return u
			}
			b.Run(what.name+"/"+observed.name+"/1", func(b *testing.B) {
				u, p := open(b), new(weir.Permit)
				for b.Loop() {
					what.call(u, p)
				}
			})
			b.Run(what.name+"/"+observed.name+"/64", func(b *testing.B) {
				u := open(b)
				b.SetParallelism(64)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					p := new(weir.Permit)
					for pb.Next() {
						what.call(u, p)
					}
				})
			})
		}
	}
}

func decide(u *weir.Upstream, p *weir.Permit) {
	if u.Try(weir.Call{}, p).Allowed {
		p.Report(outcome.Outcome{Class: outcome.OK})
	}
}

func do(u *weir.Upstream, _ *weir.Permit) {
	_, _ = weir.Do(context.Background(), u, weir.Call{}, func(context.Context) (int, error) { return 1, nil })
}

var errRejected = outcomeError{errors.New("bad request")}

type outcomeError struct{ error }

func (outcomeError) Outcome() outcome.Outcome { return outcome.Outcome{Class: outcome.Rejected} }

func fail(u *weir.Upstream, _ *weir.Permit) {
	_, _ = weir.Do(context.Background(), u, weir.Call{}, func(context.Context) (int, error) { return 0, errRejected })
}
