// Package forward is a forward proxy on a loopback address for one command. It decrypts connections to the hosts of
// upstreams and passes their calls to a handler. It tunnels connections to all other hosts unread.
package forward

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Options configure a Proxy. Upstream is required.
type Options struct {
	// Upstream returns the handler of calls to a host, or nil if connections to the host are tunneled unread. to has a
	// scheme and a host, and a port if it is not the scheme's default.
	Upstream func(to *url.URL) http.Handler

	// Named returns the handler of calls to http://ADDRESS/TOKEN/NAME/ (see Proxy.Base), or nil if there is none. The handler
	// gets requests without this prefix.
	Named func(name string) http.Handler

	Dialer *Dialer // connects to hosts that have no upstream; nil means the zero Dialer
}

// A Proxy serves one command. It is safe for concurrent use.
type Proxy struct {
	options   Options
	authority *authority
	token     string
	listener  net.Listener
	outer     *http.Server // accepts client connections
	inner     *http.Server // serves calls in decrypted connections
	decrypted *connQueue
	plain     *httputil.ReverseProxy // unencrypted requests to other hosts
	counts    counts

	tunnelsMu sync.Mutex
	tunnels   map[net.Conn]bool
	closed    bool
}

// tokenBytes is the length of the token in the proxy's URL.
const tokenBytes = 18

// Listen starts a proxy on a free port of 127.0.0.1.
func Listen(o Options) (*Proxy, error) {
	if o.Dialer == nil {
		o.Dialer = new(Dialer)
	}
	authority, err := newAuthority(time.Now())
	if err != nil {
		return nil, err
	}
	token := make([]byte, tokenBytes)
	if _, err := rand.Read(token); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		options: o, authority: authority, token: base64.RawURLEncoding.EncodeToString(token),
		listener: l, decrypted: newConnQueue(l.Addr()), tunnels: make(map[net.Conn]bool),
	}
	silent := log.New(io.Discard, "", 0) // net/http would log data that the command sends
	p.plain = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		Transport:     o.Dialer.plain(),
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "weir: "+err.Error(), http.StatusBadGateway)
		},
		ErrorLog: silent,
	}
	p.outer = &http.Server{Handler: http.HandlerFunc(p.serveOuter), ReadHeaderTimeout: handshakeTimeout, ErrorLog: silent, DisableGeneralOptionsHandler: true}
	p.inner = &http.Server{
		Handler: http.HandlerFunc(p.serveInner), ReadHeaderTimeout: handshakeTimeout, ErrorLog: silent, DisableGeneralOptionsHandler: true,
		IdleTimeout: 2 * time.Minute, ConnContext: p.decrypted.context, ConnState: p.decrypted.state,
		TLSConfig: &tls.Config{NextProtos: protocols}, Protocols: new(http.Protocols),
	}
	p.inner.Protocols.SetHTTP1(true)
	p.inner.Protocols.SetHTTP2(true)
	go func() { _ = p.outer.Serve(l) }()
	go func() { _ = p.inner.Serve(p.decrypted) }()
	return p, nil
}

// protocols are offered to clients. They exclude extended CONNECT (RFC 8441), so WebSockets use HTTP/1.1.
var protocols = []string{"h2", "http/1.1"}

// handshakeTimeout limits the TLS handshake and the header of a request.
const handshakeTimeout = 10 * time.Second

// Addr returns the address at which the proxy listens.
func (p *Proxy) Addr() net.Addr { return p.listener.Addr() }

// URL returns the proxy's URL, which contains its token.
func (p *Proxy) URL() string { return "http://weir:" + p.token + "@" + p.Addr().String() }

// Base returns the base URL of a named handler for clients that use no proxy. It contains the token and ends without a slash.
func (p *Proxy) Base(name string) string {
	return "http://" + p.Addr().String() + "/" + p.token + "/" + name
}

// CA returns the certificate of the authority that signs for the hosts of upstreams, as PEM. The key never leaves the process.
func (p *Proxy) CA() []byte { return p.authority.pem() }

// Shutdown stops accepting connections and waits for calls in flight until ctx ends. Then it closes all connections.
func (p *Proxy) Shutdown(ctx context.Context) {
	_ = p.outer.Shutdown(ctx) // does not wait for tunnels: they are hijacked
	_ = p.inner.Shutdown(ctx)
	_ = p.outer.Close()
	_ = p.inner.Close()
	p.closeTunnels()
}

// serveOuter serves a request to the proxy itself.
func (p *Proxy) serveOuter(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect && !r.URL.IsAbs() {
		p.serveNamed(w, r)
		return
	}
	if !p.allows(r.Header.Get("Proxy-Authorization")) {
		p.counts.denied.Add(1)
		w.Header().Set("Proxy-Authenticate", `Basic realm="weir"`)
		http.Error(w, "weir: this proxy serves only the command that weir run started", http.StatusProxyAuthRequired)
		return
	}
	r.Header.Del("Proxy-Authorization")
	r.Header.Del("Proxy-Connection")
	if r.Method == http.MethodConnect {
		p.connect(w, r)
		return
	}
	if r.URL.Scheme != "http" || r.URL.Host == "" || !strings.EqualFold(r.URL.Host, r.Host) {
		http.Error(w, "weir: the proxy needs http:// with the host of the Host field, or CONNECT", http.StatusBadRequest)
		return
	}
	to := &url.URL{Scheme: "http", Host: strings.ToLower(r.Host)}
	if h := p.options.Upstream(to); h != nil {
		p.counts.calls.Add(1)
		h.ServeHTTP(w, originForm(r))
		return
	}
	p.counts.tunnel(hostOf(r.Host))
	p.plain.ServeHTTP(w, r)
}

// originForm returns a request with an absolute URL in the form that an origin server receives.
func originForm(r *http.Request) *http.Request {
	r2 := *r
	r2.URL = new(*r.URL)
	r2.URL.Scheme, r2.URL.Host = "", ""
	_, rest, _ := strings.Cut(r.RequestURI, "://")
	at := strings.IndexAny(rest, "/?")
	switch {
	case at < 0:
		r2.RequestURI = "/"
	case rest[at] == '?':
		r2.RequestURI = "/" + rest[at:]
	default:
		r2.RequestURI = rest[at:]
	}
	return &r2
}

// serveNamed serves a request to /TOKEN/NAME/, for clients that use no proxy.
func (p *Proxy) serveNamed(w http.ResponseWriter, r *http.Request) {
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.RequestURI, "/"), "/")
	if !p.equals(token) {
		p.counts.denied.Add(1)
		http.Error(w, "weir: this is a proxy for the command that weir run started", http.StatusForbidden)
		return
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	var h http.Handler
	if p.options.Named != nil {
		h = p.options.Named(rest[:end])
	}
	if h == nil {
		http.NotFound(w, r)
		return
	}
	r2 := *r
	r2.RequestURI = rest[end:]
	if !strings.HasPrefix(r2.RequestURI, "/") {
		r2.RequestURI = "/" + r2.RequestURI
	}
	u, err := url.ParseRequestURI(r2.RequestURI)
	if err != nil {
		http.Error(w, "weir: the path is not valid", http.StatusBadRequest)
		return
	}
	r2.URL = u
	p.counts.calls.Add(1)
	h.ServeHTTP(w, &r2)
}

// allows reports whether a Proxy-Authorization field contains the token.
func (p *Proxy) allows(field string) bool {
	scheme, encoded, _ := strings.Cut(field, " ")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	_, password, _ := strings.Cut(string(raw), ":")
	return strings.EqualFold(scheme, "Basic") && err == nil && p.equals(password)
}

func (p *Proxy) equals(token string) bool {
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(p.token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
