package proxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/veil"
)

// forged lists the fields that tell proxies and frameworks where a request came from, or that override its path or
// method. Any client can write them, so they are forwarded only if the upstream asks for them (Upstream.Pass).
var forged = set(
	"Forwarded", "X-Forwarded", "X-Real-Ip", "X-Client-Ip", "Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Fastly-Client-Ip", "Fly-Client-Ip", "X-Azure-Clientip",
	"X-Proxyuser-Ip", "X-Remote-Ip", "X-Remote-Addr", "X-Originating-Ip", "X-Original-Forwarded-For", "X-Envoy-External-Address",
	"X-Original-Url", "X-Rewrite-Url", "X-Envoy-Original-Path", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Method",
)

func set(names ...string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

// framing lists the fields that delimit a request or belong to its connection.
var framing = []string{
	"Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// dropForged deletes the fields that are not forwarded. Some servers read _ as -, so a field with an underscore is
// treated like the one with a dash if that would be harmful. A trusted caller's fields are forwarded unless they
// identify it.
func (u *Upstream) dropForged(h http.Header, trusted bool) {
	for name := range h {
		if (u.identifies(name) || !trusted && u.harms(name)) && !slices.Contains(u.Pass, name) {
			delete(h, name)
		}
	}
}

// dropOwn deletes the fields that are for weir only. A dialect reads them until an attempt is made.
func (u *Upstream) dropOwn(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "X-Weir-") && !slices.Contains(u.Pass, name) {
			delete(h, name)
		}
	}
}

// adds sets weir's own credentials.
func (u *Upstream) adds(h http.Header) {
	for name, values := range u.Sends {
		h[name] = values
	}
}

// identifies reports whether a field identifies the caller and is for weir alone.
func (u *Upstream) identifies(name string) bool {
	return u.Callers != nil && u.Callers.Consumes(name)
}

func (u *Upstream) harms(name string) bool {
	dashed := strings.Contains(name, "_")
	if dashed {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return u.identifies(name) ||
		dashed && strings.HasPrefix(name, "X-Weir-") || strings.HasPrefix(name, "X-Forwarded-") || forged[name] ||
		dashed && (slices.Contains(framing, name) || name == httpx.CorrelationHeader || u.Credentials && veil.Secret(name))
}

// trailing is the body of a request with trailers. At its end it copies the declared and allowed trailers. The server
// accepts undeclared ones as well, and by then the fields that identify the caller have been read.
type trailing struct {
	body     io.ReadCloser
	from, to http.Header // from the caller, and to the upstream
}

// newTrailing returns a body with the trailers that are forwarded.
func (u *Upstream) newTrailing(r *http.Request) *trailing {
	t := &trailing{body: r.Body, from: r.Trailer, to: make(http.Header)}
	for name := range r.Trailer {
		if httpguts.ValidTrailerHeader(name) && !veil.Secret(name) && !u.harms(name) && !strings.HasPrefix(name, "X-Weir-") && name != httpx.CorrelationHeader && !slices.Contains(framing, name) {
			t.to[name] = nil
		}
	}
	return t
}

func (t *trailing) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	if err != nil {
		for name := range t.to {
			t.to[name] = t.from[name]
		}
	}
	return n, err
}

func (t *trailing) Close() error { return t.body.Close() }

// sealed is the body of a response. It removes trailers with weir's prefix.
type sealed struct {
	trailing
	resp *http.Response
}

func seal(resp *http.Response) {
	drop(resp.Header, "X-Weir-")
	drop(resp.Trailer, "X-Weir-")
	if resp.ContentLength < 0 && resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = &sealed{trailing{body: resp.Body}, resp}
	}
}

// SetIdle forwards to the body from httpx.Transport.
func (s *sealed) SetIdle(d time.Duration) {
	if b, ok := s.body.(interface{ SetIdle(time.Duration) }); ok {
		b.SetIdle(d)
	}
}

func (s *sealed) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if err != nil {
		drop(s.resp.Trailer, "X-Weir-")
	}
	return n, err
}
