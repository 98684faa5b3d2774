package config

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
)

// Metrics configures where metrics are sent by OTLP, besides the admin listener. See docs/reference/metrics.md.
type Metrics struct {
	URL     string
	Headers map[string]string // with the environment variables of their values
	Service string
	Attrs   map[string]string
	Every   time.Duration // 0 means the default
}

var metricsFields = []field[Metrics]{
	one("url", word, func(m *Metrics) *string { return &m.URL }, "as `traces`", ""),
	{"headers", "headers, each with a variable", "as `traces`, if `url` is not set", "", func(d *decoder, n *node, m *Metrics) { m.Headers = readHeaders(d, n) }},
	one("service", word, func(m *Metrics) *string { return &m.Service }, "as `traces`, or weir", ""),
	{"attributes", "names, each with a text", "as `traces`", "", func(d *decoder, n *node, m *Metrics) { m.Attrs = d.texts(n) }},
	one("every", duration, func(m *Metrics) *time.Duration { return &m.Every }, "1m", ""),
}

func readMetrics(d *decoder, n *node, f *document) {
	if isOff(n) {
		return
	}
	var m Metrics
	if !isOn(n) {
		if object(d, n, metricsFields, &m); n.Kind != doc.Mapping {
			return
		}
	}
	if ms, err := strconv.Atoi(d.variable("OTEL_METRIC_EXPORT_INTERVAL")); err == nil && ms >= 1000 && n.Get("every") == nil {
		m.Every = time.Duration(ms) * time.Millisecond
	}
	if every := n.Get("every"); every != nil && m.Every < time.Second {
		d.Bad(every, "write every: 1s", "is shorter than a second")
	}
	f.Metrics = &m
}

// likeTraces copies settings from traces that metrics do not set.
func (m *Metrics) likeTraces(d *decoder, n *node, t *Traces) {
	if t != nil {
		if m.Service == "" {
			m.Service = t.Service
		}
		if n.Get("attributes") == nil {
			m.Attrs = t.Attrs
		}
	}
	const advice = "write traces: {url: http://127.0.0.1:4318}, or set OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	if m.URL == "" {
		m.URL = d.variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
	}
	if m.URL == "" && (t == nil || t.Region != "") {
		m.URL = d.variable("OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	if m.URL != "" {
		at := n.Get("url")
		if at == nil {
			at = n
		}
		m.URL = m.readURL(d, at, advice)
		return
	}
	if t == nil || t.Region != "" {
		d.Bad(n, advice, "has no url, and the receiver of traces does not accept metrics")
		return
	}
	if n.Get("headers") == nil {
		m.Headers = t.Headers
	}
	switch bare, ok := strings.CutSuffix(t.URL, "/v1/traces"); {
	case strings.HasPrefix(t.URL, "grpc"):
		m.URL = t.URL
	case ok:
		m.URL = bare + "/v1/metrics"
	default:
		d.Bad(n, advice, "has no url, and the url of traces does not end in /v1/traces")
	}
}

func (m *Metrics) readURL(d *decoder, n *node, advice string) string {
	u, err := url.Parse(m.URL)
	switch {
	case err != nil || u.Host == "":
	case u.User != nil || u.RawQuery != "":
		d.Bad(n, "put credentials into headers", "has a user or a query, which may be secret")
		return ""
	case u.Scheme == "http" || u.Scheme == "https":
		if strings.Trim(u.Path, "/") == "" {
			u = u.JoinPath("/v1/metrics")
		}
		return u.String()
	case (u.Scheme == "grpc" || u.Scheme == "grpcs") && u.Path == "" && u.Port() != "":
		return m.URL
	}
	d.Bad(n, advice, "is not the URL of an OTLP receiver")
	return ""
}
