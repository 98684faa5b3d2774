package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// By default, metrics go where traces go, with the same attributes.
func TestMetricsGoWhereTracesGo(t *testing.T) {
	const traces = "headers: {authorization: TOKEN}, service: orders, attributes: {a: b}"
	headers, attrs := map[string]string{"Authorization": "TOKEN"}, map[string]string{"a": "b"}
	for _, c := range []struct {
		traces, metrics string
		want            *Metrics
	}{
		{"{url: \"http://otel:4318\", " + traces + "}", "{}", &Metrics{URL: "http://otel:4318/v1/metrics", Headers: headers, Service: "orders", Attrs: attrs}},
		{"{url: \"grpc://otel:4317\", " + traces + "}", "{every: 5s}", &Metrics{URL: "grpc://otel:4317", Headers: headers, Service: "orders", Attrs: attrs, Every: 5 * time.Second}},
		{"{url: \"https://otel/in/v1/traces\"}", "{service: other, attributes: {c: d}}", &Metrics{URL: "https://otel/in/v1/metrics", Service: "other", Attrs: map[string]string{"c": "d"}}},
		{"{url: \"http://otel:4318\", " + traces + "}", "{url: \"http://elsewhere\"}", &Metrics{URL: "http://elsewhere/v1/metrics", Service: "orders", Attrs: attrs}}, // the token is not sent to other hosts
		{"{region: eu-west-1}", "{url: \"grpcs://otel:4317\"}", &Metrics{URL: "grpcs://otel:4317"}},
		{"off", "{url: \"http://otel/metrics\"}", &Metrics{URL: "http://otel/metrics"}},
		{"{url: \"http://otel:4318\"}", "off", nil},
	} {
		f, err := Parse("weir.yaml", fmt.Appendf(nil, "metrics: %s\ntraces: %s\nupstreams: {api: {url: \"https://api.example.com\"}}\n", c.metrics, c.traces), nil)
		if err != nil {
			t.Errorf("%s, %s: %v", c.traces, c.metrics, err)
			continue
		}
		if !reflect.DeepEqual(f.Metrics, c.want) {
			t.Errorf("%s, %s: got %+v, want %+v", c.traces, c.metrics, f.Metrics, c.want)
		}
	}
}

func TestMetricsThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"metrics: {}": "has no url",
		"traces: {region: eu-west-1}\nmetrics: {}":     "has no url",
		"traces: {url: \"udp://h:2000\"}\nmetrics: {}": "has no url",
		"traces: {url: \"http://h/x\"}\nmetrics: {}":   "does not end in /v1/traces",
		"metrics: {url: \"udp://127.0.0.1:2000\"}":     "is not the URL",
		"metrics: {url: \"grpc://127.0.0.1\"}":         "is not the URL",
		"metrics: {url: \"http://u:secret@h:4318\"}":   "may be secret",
		"metrics: {url: \"http://h\", every: 1ms}":     "shorter than a second",
	} {
		_, err := Parse("weir.yaml", []byte(text+"\nupstreams: {api: {url: \"https://api.example.com\"}}\n"), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
