package config

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// Traces configures where traces are sent, and which calls are traced. See docs/how-to/trace.md.
type Traces struct {
	URL     string
	Region  string            // for X-Ray; "" means that requests are not signed
	Headers map[string]string // with the environment variables of their values
	Service string
	Attrs   map[string]string
	Share   float64 // 0 means the default, negative means none; the same holds for Each
	Each    int
	Refused int
	Trust   bool
	XRay    bool
	Memory  int64
}

var tracesFields = []field[Traces]{
	one("url", word, func(t *Traces) *string { return &t.URL }, "required, or `region`", "OTLP receiver: `http://127.0.0.1:4318` (weir adds `/v1/traces` if there is no path), `grpc://127.0.0.1:4317` or `grpcs://`."),
	one("region", awsRegion, func(t *Traces) *string { return &t.Region }, "none", "Sends signed requests to X-Ray in this AWS region. CloudWatch's Transaction Search must be on."),
	{"headers", "headers, each with a variable", "none", "", func(d *decoder, n *node, t *Traces) { t.Headers = readHeaders(d, n) }},
	one("service", word, func(t *Traces) *string { return &t.Service }, "weir", ""),
	{"attributes", "names, each with a text", "none", "", func(d *decoder, n *node, t *Traces) { t.Attrs = d.texts(n) }},
	one("share", orOff(share, -1), func(t *Traces) *float64 { return &t.Share }, "5%", "Share of successful calls to keep."),
	one("each_second", orOff(count[int](1), -1), func(t *Traces) *int { return &t.Each }, "1", ""),
	one("refused_each_second", count[int](1), func(t *Traces) *int { return &t.Refused }, "50", ""),
	one("trust", boolean, func(t *Traces) *bool { return &t.Trust }, "false", ""),
	one("xray", boolean, func(t *Traces) *bool { return &t.XRay }, "false", ""),
	one("memory", size(1<<20, 1<<30), func(t *Traces) *int64 { return &t.Memory }, "32MiB", ""),
}

func readTraces(d *decoder, n *node, f *document) {
	if isOff(n) {
		return
	}
	var t Traces
	if object(d, n, tracesFields, &t); n.Kind != doc.Mapping {
		return
	}
	f.Traces = &t
	if n.Get("xray") == nil {
		t.XRay = t.Region != ""
	}
	if t.Service == "" {
		t.Service = d.variable("OTEL_SERVICE_NAME")
	}
	if t.Attrs == nil {
		t.Attrs = otelPairs(d.variable("OTEL_RESOURCE_ATTRIBUTES"))
	}
	switch {
	case t.URL != "":
		t.readURL(d, n.Get("url"))
	case t.Region == "":
		d.Bad(n, receiverAdvice, "has neither url nor region")
	}
}

// variable returns an environment variable, or "" if it is missing.
func (d *decoder) variable(name string) string {
	if d.lookup == nil {
		return ""
	}
	v, _ := d.lookup(name)
	return strings.TrimSpace(v)
}

// otelPairs returns the pairs of an OpenTelemetry variable: "a=1,b=2", with URL-encoded values. It skips malformed
// pairs.
func otelPairs(text string) map[string]string {
	var all map[string]string
	for _, pair := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if value, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil && strings.TrimSpace(name) != "" {
			put(&all, strings.TrimSpace(name), value)
		}
	}
	return all
}

// OTelHeaders returns the headers of OTEL_EXPORTER_OTLP_HEADERS.
func OTelHeaders(env func(string) (string, bool)) map[string]string {
	text, _ := env("OTEL_EXPORTER_OTLP_HEADERS")
	return otelPairs(text)
}

const receiverAdvice = "write traces: {url: http://127.0.0.1:4318}"

func (t *Traces) readURL(d *decoder, n *node) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" {
		d.Bad(n, receiverAdvice, "is not the URL of a receiver")
		return
	}
	if u.User != nil || u.RawQuery != "" {
		d.Bad(n, "put credentials into headers", "has a user or a query, which may be secret")
		return
	}
	bare := t.Region == "" && u.Path == "" && u.Port() != ""
	switch u.Scheme {
	case "http", "https":
		if strings.Trim(u.Path, "/") == "" {
			t.URL = u.JoinPath("/v1/traces").String()
		}
	case "udp":
		d.Bad(n, "write traces: {url: http://127.0.0.1:4318} for CloudWatch's agent or OpenTelemetry's collector, or traces: {region: eu-west-1}", "is an X-Ray daemon, which weir no longer sends to")
	case "grpc", "grpcs":
		if !bare {
			d.Bad(n, "write traces: {url: grpc://127.0.0.1:4317}", "needs a port, and has no path and no region")
		}
	default:
		d.Bad(n, receiverAdvice, "is not the URL of a receiver")
	}
}

// readHeaders reads header names, each with an environment variable.
func readHeaders(d *decoder, n *node) map[string]string {
	all := make(map[string]string, len(n.Fields))
	for _, e := range d.named(n) {
		switch variable, ok := word.read(d, e.Value); {
		case !ok:
		case !token.MatchString(e.Name):
			d.Bad(e.Key, "", "is not the name of a header")
		default:
			all[http.CanonicalHeaderKey(e.Name)] = variable
		}
	}
	return all
}
