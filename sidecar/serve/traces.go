package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http/httpguts"

	"github.com/seed1158cd35/weir"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/observe/trace/otlp"
	"github.com/seed1158cd35/weir/observe/trace/otlp/xray"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// traces holds the tracer of all calls. The zero value traces nothing.
type traces struct {
	*trace.Tracer
}

func (s *Server) newTraces(c *config.Traces, registry prometheus.Registerer) (err error) {
	if c == nil {
		return nil
	}
	e, err := s.exporter(c)
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	s.traces.Tracer = trace.New(trace.Options{
		Kept: s.exemplar,
		To:   e, Log: s.log, Share: c.Share, Each: c.Each, Refused: c.Refused, Trust: c.Trust, XRay: c.XRay, Bytes: c.Memory,
	})
	weirprom.Traces(registry, s.traces.counts)
	return nil
}

// exemplar adds a call with a trace to the latency metrics.
func (s *Server) exemplar(k trace.Kept) {
	s.metrics.Exemplar(weirprom.Exemplar{Upstream: k.Upstream, Result: k.Result, Trace: k.Trace.String(), Took: k.Took, At: k.Ended})
}

// exporter returns the receiver of traces.
func (s *Server) exporter(c *config.Traces) (trace.Exporter, error) {
	of := s.resource(c.Service, c.Attrs)
	if c.Region != "" {
		cfg, err := awsDefaults(c.Region)
		if err != nil {
			return nil, err
		}
		return xray.New(xray.Config{AWS: cfg, URL: c.URL, Resource: of})
	}
	h, err := headersOf(c.Headers, s.with.Env)
	if err != nil {
		return nil, err
	}
	if to, ok := byGRPC(c.URL, h); ok {
		to.Resource = of
		return otlp.NewGRPC(to)
	}
	return otlp.NewHTTP(otlp.HTTP{URL: c.URL, Header: h, Resource: of})
}

// resource describes the source of traces and metrics.
func (s *Server) resource(service string, attrs map[string]string) otlp.Resource {
	return otlp.Resource{Service: service, Version: s.with.Version, Instance: process(), Attrs: attrs}
}

// byGRPC returns the receiver of OTLP over gRPC, if the URL is one.
func byGRPC(url string, h http.Header) (to otlp.GRPC, ok bool) {
	target, secure := strings.CutPrefix(url, "grpcs://")
	target, plain := strings.CutPrefix(target, "grpc://")
	if !secure && !plain {
		return to, false
	}
	to = otlp.GRPC{Target: target, Header: make(map[string]string)}
	for name := range h {
		to.Header[name] = h.Get(name)
	}
	if secure {
		to.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return to, true
}

// counts returns how many traces were kept, dropped and exported.
func (t traces) counts() weirprom.TraceCounts {
	s := t.Stats()
	c := weirprom.TraceCounts{Kept: make(map[string]int64), Dropped: make(map[string]int64), Exported: s.Spans, Denied: s.Denied, Waiting: s.Waiting}
	for why, n := range s.Kept {
		c.Kept[string(why)] = n
	}
	for why, n := range s.Dropped {
		c.Dropped[string(why)] = n
	}
	return c
}

// headersOf returns the headers for the receiver. Its error contains no values.
func headersOf(variables map[string]string, env func(string) (string, bool)) (http.Header, error) {
	h := make(http.Header)
	if len(variables) == 0 {
		for name, v := range config.OTelHeaders(env) {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
				return nil, errors.New("headers: environment variable OTEL_EXPORTER_OTLP_HEADERS contains an invalid header")
			}
			h.Set(name, v)
		}
	}
	for name, variable := range variables {
		v, _ := env(variable)
		if v = strings.TrimSpace(v); v == "" || !httpguts.ValidHeaderFieldValue(v) {
			return nil, fmt.Errorf("headers: environment variable %s is empty, or not a valid header value", variable)
		}
		h.Set(name, v)
	}
	return h, nil
}

// events combines the given events with those of the tracer.
func (t traces) events(all weir.Events) weir.Events {
	if t.Tracer == nil {
		return all
	}
	return weir.Tee(all, t.Events())
}

// closeTraces sends the remaining traces.
func (s *Server) closeTraces() {
	if s.traces.Tracer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	if n := s.traces.Close(ctx); n > 0 {
		s.log.Warn("the last traces were not delivered", "traces", n)
	}
}
