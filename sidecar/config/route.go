package config

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

var routeFields = []field[proxy.Route]{
	one("host", host, func(r *proxy.Route) *string { return &r.Host }, "any", "Host of the request, without port; upper and lower case are equal."),
	one("path", prefix, func(r *proxy.Route) *string { return &r.Path }, "any", "Path prefix of whole segments: `/s3/` matches `/s3` and `/s3/key`, not `/s3x`."),
	one("strip", boolean, func(r *proxy.Route) *bool { return &r.Strip }, "false", "Removes `path` before forwarding."),
	one("stream", boolean, func(r *proxy.Route) *bool { return &r.Stream }, "false", "Allows slow or silent request bodies; always true for gRPC."),
	one("websocket", boolean, func(r *proxy.Route) *bool { return &r.WebSocket }, "false", "Limits connections and messages of WebSockets; see docs/how-to/limit-websockets.md. Without it, they pass through."),
	one("deliver", delivers, func(r *proxy.Route) *proxy.Deliver { return &r.Deliver }, "false",
		"`true` accepts requests with `Prefer: respond-async` for later delivery (202), `always` all requests. Needs `deliveries`; see docs/reference/deliveries.md."),
	one("idempotency", keepsAnswers, func(r *proxy.Route) *bool { return &r.Keep.On }, "off",
		"`keep` stores the first response for an `Idempotency-Key` and returns it again. Needs `deliveries`; see docs/reference/deliveries.md."),
	one("idempotency_busy", whileBusy, func(r *proxy.Route) *bool { return &r.Keep.Waits }, "refuse",
		""),
	one("idempotency_failed", keepsAnswers, func(r *proxy.Route) *bool { return &r.Keep.Failed }, "off",
		""),
}

// Settings of a route or operation.
var (
	delivers     = choice("true, always or false", map[string]proxy.Deliver{"true": proxy.DeliverAsked, "always": proxy.DeliverAlways, "false": proxy.DeliverNever})
	keepsAnswers = choice("keep or off", map[string]bool{"keep": true, "off": false})
	whileBusy    = choice("refuse or wait", map[string]bool{"wait": true, "refuse": false})
)

func readRoutes(d *decoder, n *node, u *site) {
	if n.Kind != doc.List {
		d.Bad(n, "write routes: [{path: /s3/}]", "%s: want a list of routes", n.Show())
		return
	}
	if len(n.Items) == 0 {
		d.Bad(n, "leave routes out for the default", "no request would reach the upstream")
	}
	if len(n.Items) > mostNamed {
		d.Bad(n, "", "has %d routes; at most %d are allowed", len(n.Items), mostNamed)
		return
	}
	for _, item := range n.Items {
		var r proxy.Route
		if !object(d, item, routeFields, &r) {
			continue
		}
		switch {
		case item.Get("host") == nil && item.Get("path") == nil:
			d.Bad(item, "write path: / for every request", "has neither host nor path")
		case r.Strip && item.Get("path") == nil:
			d.Bad(item.Get("strip"), "", "strip needs path")
		default:
			u.Routes = append(u.Routes, r)
			u.routes = append(u.routes, item)
		}
	}
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

// asciiHost returns a host in the form that is resolved and sent. Non-ASCII names are encoded by IDNA (bücher.example
// is xn--bcher-kva.example). Invalid names are returned unchanged.
func asciiHost(host string) string {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i:]
	}
	if strings.IndexFunc(name, func(c rune) bool { return c > 0x7f }) < 0 {
		return host
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		return host
	}
	return ascii + port
}

// goodHost accepts names and addresses, IPv6 addresses without brackets.
func goodHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return len(s) <= 253 && hostName.MatchString(s)
}

func goodPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

var host = text("a host", func(s string) (string, string, string) {
	bare := asciiHost(strings.TrimSuffix(strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")), "."))
	switch {
	case goodHost(bare):
		return bare, "", ""
	case strings.Contains(s, "*"):
		return "", "is not a host: wildcards are not supported", "name each host; a route without one takes every host"
	case strings.Contains(s, ":"):
		return "", "is not a host", "write it without scheme and port"
	}
	return "", "is not a host", ""
})

// hostPattern reads a host in which * matches any characters, except in the last two labels.
var hostPattern = text("a host", func(s string) (string, string, string) {
	s = strings.ToLower(s)
	if labels := strings.Split(s, "."); len(labels) < 2 && strings.Contains(s, "*") || strings.Contains(strings.Join(labels[max(0, len(labels)-2):], "."), "*") {
		return "", "has * in its last two labels", "write the domain in full: *.example.com"
	}
	labels := strings.Split(s, ".")
	for i, label := range labels {
		if !strings.Contains(label, "*") {
			labels[i] = asciiHost(label)
		}
	}
	s = strings.Join(labels, ".")
	if !goodHost(strings.ReplaceAll(s, "*", "x")) {
		return "", "is not a host", "write it without scheme and port"
	}
	return s, "", ""
})

// prefix reads a path in the form of proxy.Route.Path.
var prefix = text("a path", func(s string) (string, string, string) {
	switch {
	case !strings.HasPrefix(s, "/"):
		return "", "must begin with a slash", "write /" + s
	case strings.ContainsAny(s, "?#* \t\r\n"):
		return "", "must be a plain prefix, without query, fragment, space or wildcard", ""
	case strings.Contains(s, "//") || dotted(s):
		return "", "must have no empty segment and no . or ..", ""
	case s == "/":
		return "", "", ""
	}
	return strings.TrimSuffix(s, "/") + "/", "", ""
})

// address reads a host and port to listen on.
var address = text("host:port", func(s string) (string, string, string) {
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return "", "want host:port", "write 127.0.0.1:8080, or :8080 for every address"
	}
	name := s[:at]
	if len(name) > 2 && name[0] == '[' && name[len(name)-1] == ']' {
		name = name[1 : len(name)-1]
	} else if strings.Contains(name, ":") {
		return "", "want host:port", "write an IPv6 address in brackets: [::1]:8080"
	}
	if name != "" && !goodHost(name) {
		return "", "is not a host and a port", ""
	}
	if _, err := strconv.ParseUint(s[at+1:], 10, 16); err != nil {
		return "", "want a port from 0 to 65535 after the colon", ""
	}
	return s, "", ""
})

var source = text("header:NAME, query:NAME, caller or remote", parseSource)

func parseSource(s string) (httpx.Source, string, string) {
	kind, name, _ := strings.Cut(s, ":")
	switch {
	case s == httpx.FromRemote || s == httpx.FromCaller:
		return httpx.Source{Kind: s}, "", ""
	case kind != httpx.FromHeader && kind != httpx.FromQuery:
		return httpx.Source{}, "want header:NAME, query:NAME, caller or remote", ""
	case kind == httpx.FromQuery && name != "" && name == strings.TrimSpace(name):
		return httpx.Source{Kind: httpx.FromQuery, Name: name}, "", ""
	case !token.MatchString(name):
		return httpx.Source{}, "is not the name of a header or parameter", ""
	}
	return httpx.Source{Kind: httpx.FromHeader, Name: http.CanonicalHeaderKey(name)}, "", ""
}

// Claim is the kind of a key from a claim of the caller's token.
const Claim = "claim"

// callerSource reads a source, or a claim.
var callerSource = text("header:NAME, query:NAME, claim:NAME, caller or remote", func(s string) (httpx.Source, string, string) {
	if name, ok := strings.CutPrefix(s, Claim+":"); ok && name != "" && name == strings.TrimSpace(name) {
		return httpx.Source{Kind: Claim, Name: name}, "", ""
	}
	v, wrong, hint := parseSource(s)
	return v, strings.Replace(wrong, "query:NAME,", "query:NAME, claim:NAME,", 1), hint
})

// headerName reads the name of a header and returns its canonical form.
var headerName = text("header names", func(s string) (string, string, string) {
	if !token.MatchString(s) {
		return "", "is not the name of a header", ""
	}
	return http.CanonicalHeaderKey(s), "", ""
})

var token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // RFC 9110 5.6.2

func readKeys(d *decoder, n *node, u *site) {
	u.Keys = make(map[string]httpx.Source, len(n.Fields))
	for _, e := range d.named(n) {
		s, _ := source.read(d, e.Value)
		u.Keys[e.Name] = s // even a bad one, so that what uses it is not said to lack it
	}
}
