package serve

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/observe/trace/otlp"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// newMeter starts sending the registry's metrics by OTLP, if the file configures it.
func (s *Server) newMeter(c *config.Metrics, registry *prometheus.Registry) error {
	if c == nil {
		return nil
	}
	to, err := s.metricsTo(c)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	meter := otlp.NewMeter(otlp.Metrics{Gather: s.gatherer(registry).Gather, To: to, Log: s.log, Resource: s.resource(c.Service, c.Attrs), Every: c.Every})
	s.meter = meter
	weirprom.Exports(registry, func() weirprom.ExportCounts {
		m := meter.Stats()
		return weirprom.ExportCounts{Exported: m.Exported, Failed: m.Failed, Denied: m.Denied, Dropped: m.Dropped, Waiting: m.Waiting}
	})
	return nil
}

func (s *Server) metricsTo(c *config.Metrics) (otlp.Sender, error) {
	h, err := headersOf(c.Headers, s.with.Env)
	if err != nil {
		return nil, err
	}
	if to, ok := byGRPC(c.URL, h); ok {
		return otlp.MetricsGRPC(to)
	}
	return otlp.MetricsHTTP(otlp.HTTP{URL: c.URL, Header: h})
}

// closeMeter sends the last metrics.
func (s *Server) closeMeter() {
	if s.meter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	if n := s.meter.Close(ctx); n > 0 {
		s.log.Warn("the last metrics were not delivered", "requests", n)
	}
	s.meter = nil
}

// gatherer returns the source of the metrics, with the old names if the file asks for them.
func (s *Server) gatherer(registry *prometheus.Registry) prometheus.Gatherer {
	if s.file.OldMetricNames {
		return weirprom.OldNames(registry)
	}
	return registry
}
