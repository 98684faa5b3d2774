package export

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/sidecar/config"
)

const (
	typePrefix = "type.googleapis.com/envoy.extensions."
	h2Options  = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	service    = "weir-ratelimit" // the cluster of those who answer
)

// Envoy is what an Envoy needs to ask weir about each request: the filter with the routes and what they send, and the
// cluster of weir. The clusters of the upstreams, which are named like these, are the reader's.
func Envoy(f *config.File, o EnvoyOptions) (File, error) {
	l := &ledger{target: "Envoy", file: f}
	all, err := l.chosen(o.Upstreams)
	if err != nil {
		return File{}, err
	}
	for _, u := range all { // what has no rule must not be asked for
		l.bounds(u)
		for i := range u.Policy.Limits {
			l.descriptor(u, &u.Policy.Limits[i], o.Plain)
		}
	}
	found := len(l.errs)
	weir, err := l.service(o.Address)
	if err != nil {
		return File{}, err
	}
	side := struct {
		Manager  connectionManager `yaml:"http_connection_manager"`
		Clusters []cluster         `yaml:"clusters"`
	}{
		connectionManager{true, true, []filter{
			{"envoy.filters.http.ratelimit", l.filter(o)},
			{"envoy.filters.http.router", bare{typePrefix + "filters.http.router.v3.Router"}},
		}, routeConfig{"weir", l.hosts(all)}},
		[]cluster{weir},
	}
	l.errs = l.errs[:found] // routes complain of the same keys again
	return l.written("What Envoy needs to ask weir, to be merged into its http_connection_manager and its clusters. Made by weir export envoy;\n"+
		"# weir export envoy-rules writes the rules. The clusters of the upstreams are yours.", side)
}

func (l *ledger) filter(o EnvoyOptions) (r rateLimitFilter) {
	r.Type = typePrefix + "filters.http.ratelimit.v3.RateLimit"
	r.Domain = cmp.Or(o.Domain, "weir")
	r.Service.Version = "V3"
	r.Service.GRPC.Envoy.Cluster = service
	timeout := 20 * time.Millisecond
	if d := l.file.Decide; d != nil {
		timeout = cmp.Or(d.Envoy.Timeout, timeout)
		if len(d.Tokens) > 0 {
			l.warnings = append(l.warnings, "decide.tokens: Envoy has to send one: add initial_metadata with authorization to grpc_service")
		}
		if d.ClientCA != "" {
			l.warnings = append(l.warnings, "decide.client_ca: Envoy has to have a certificate: add it to transport_socket")
		}
	}
	// Longer than weir's own for its store, so that weir's answer arrives.
	r.Timeout = strconv.FormatFloat((timeout+30*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	return r
}

// service is the cluster of weir.
func (l *ledger) service(at string) (c cluster, err error) {
	if at == "" && l.file.Decide != nil {
		at = l.file.Decide.GRPC
	}
	if at == "" {
		return c, errors.New("weir does not answer Envoy: set decide.grpc and decide.rules, or say the address of the rate limit service")
	}
	host, text, err := net.SplitHostPort(at)
	port, bad := strconv.ParseUint(text, 10, 16)
	if err != nil || bad != nil || port == 0 {
		return c, fmt.Errorf("%q is no address of a rate limit service: write host:port", at)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return c, fmt.Errorf("%q does not say where Envoy finds weir: say the address of the rate limit service", at)
	}
	c = cluster{Name: service, Type: "STRICT_DNS", Connect: "0.25s", Protocol: map[string]any{h2Options: map[string]any{
		"@type":                "type.googleapis.com/" + h2Options,
		"explicit_http_config": map[string]any{"http2_protocol_options": struct{}{}},
	}}}
	if l.file.TLS != nil {
		c.TLS = &transport{"envoy.transport_sockets.tls", serverName{typePrefix + "transport_sockets.tls.v3.UpstreamTlsContext", host}}
		l.warnings = append(l.warnings, "tls: Envoy takes any certificate until transport_socket has a validation_context")
	}
	var e endpoint
	e.Endpoint.Address.Socket.Address, e.Endpoint.Address.Socket.Port = host, int(port)
	c.Load = assignment{service, []locality{{[]endpoint{e}}}}
	return c, nil
}
