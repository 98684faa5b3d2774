// Package proxy is the sidecar. It accepts requests for the configured upstreams, forwards them under their policies,
// and streams the responses back.
//
// Raw path, query and body are forwarded byte for byte. Headers are forwarded unchanged, with three exceptions:
//
//   - Headers of one connection (RFC 9110, 7.6.1).
//   - Headers that state where a request came from or what it is really for, and that any client could forge
//     (X-Forwarded-*, X-Real-Ip, X-Original-Url, ...).
//   - X-Weir-*, which is exchanged between callers and weir only.
package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/sidecar/direct"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// An Upstream is an API to which requests are forwarded.
type Upstream struct {
	Name     string
	URL      *url.URL // scheme and host, with an optional path that is put before the request's
	Hosts    []string // hosts whose requests Forward handles, with * for any characters; none means the host of URL
	Routes   []Route  // which requests belong to it; none means the path /NAME/, stripped
	Policy   weir.Policy
	Replay   int64                   // bytes of a body that are kept for a retry; 0 means httpx.DefaultReplay, below 0 none
	MaxBody  int64                   // size limit of a request body in bytes; 0 means no limit
	Full     Full                    // how bodies are handled when there is no memory for them
	Keys     map[string]httpx.Source // where the keys of scopes are read
	Priority *httpx.Source           // where the caller's priority is read; nil means that callers state none
	Dialect  httpx.Dialect           // the API's protocol on top of HTTP; nil means none
	HTTP2    bool                    // weir speaks only HTTP/2 to it, also without encryption
	GRPC     bool                    // the dialect is gRPC: its bodies may be slow and silent without limit

	// Sends are headers with credentials. They replace the caller's headers of the same name.
	Sends http.Header

	Schedule string          // name of the retry schedule of deliveries; "" means "webhook"
	Stop     bool            // a dead letter stops the deliveries with its order key
	GivesUp  delivery.GiveUp // when deliveries become dead letters without another attempt
	Callback string          // name of the callback that is notified when a delivery ends; "" for none
	Keep     []string        // headers that are stored with a delivery, besides the usual ones

	Pass []string // forgeable header fields, in canonical form, that are forwarded nevertheless

	Idle Idle // idle connections

	// Dial connects to the API. Nil means the system's dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Roots *x509.CertPool // roots for the API's certificate; nil means the system's

	Nested bool // calls reach the API through another weir, whose refusals say nothing about the API

	Veil *veil.Veil // hides the keys of scopes; nil hides only values that look like credentials

	Callers Callers // count requests per caller; nil if only the dialect does, or nothing does

	StaleIfError time.Duration  // the highest age of a stored answer that replaces a failed GET or HEAD; 0 means none
	Answers      *cache.Cache   // stores good answers for StaleIfError; nil if none are stored
	Replayed     func(Replayed) // is called for failed calls that got a stored answer; may be nil

	Sockets *websocket.Config // for connections of routes with WebSocket; nil if there are none

	Own map[string]Own // by operation name; nil if no operation overrides its route

	PauseScope string // the scope whose key is the account of a credential; "" means that each credential is its own account

	Closed      bool // requests of undeclared operations are refused
	Credentials bool // weir adds its own credentials to requests, here or in another upstream that answers instead
	Identifies  bool // the dialect refuses unknown callers
}

// Idle configures how many idle connections are kept, and for how long. Zero values mean the defaults of httpx.NewBase.
// A zero PerHost means Most.
type Idle struct {
	Most, PerHost int
	For           time.Duration
}

// in applies the settings to a transport.
func (i Idle) in(t *http.Transport) {
	t.MaxIdleConns = cmp.Or(i.Most, t.MaxIdleConns)
	t.MaxIdleConnsPerHost = min(t.MaxIdleConns, cmp.Or(i.PerHost, t.MaxIdleConns))
	t.IdleConnTimeout = cmp.Or(i.For, t.IdleConnTimeout)
}

// Full determines how a body is handled that should be held in memory while the memory for bodies is full.
type Full uint8

const (
	FullDefault Full = iota // the dialect decides: without one the body passes, language models refuse it
	FullPass                // the body is sent once; its token cost is estimated from its size
	FullRefuse              // 503, or 413 if the body is larger than the memory
)

// A Route assigns requests to an upstream. Host and Path must both match. Routes with a host win over routes without
// one, then the longest path wins.
type Route struct {
	Host  string // without port, in any case; "" means any
	Path  string // a prefix of complete segments; "" means any
	Strip bool   // remove Path before forwarding

	// Stream marks request bodies as streams, which may be silent and slow.
	Stream bool

	// WebSocket allows WebSocket connections, whose messages are limited.
	WebSocket bool

	Deliver Deliver
	Keep    Keep // first answers by Idempotency-Key
}

// A target is an upstream in use.
type target struct {
	Upstream
	weir      *weir.Upstream
	transport *httpx.Transport
	base      base
	keys      []key
	inQuery   []string                           // parameters that must not be in a query twice
	silence   time.Duration                      // longest silence of a gRPC call in both directions; 0 or less if there is no limit
	priority  func(*http.Request) limit.Priority // nil if callers state none
	byPath    bool                               // the path of a request determines its operation
}

// newTarget puts an upstream into use. An upstream of the same name at the same API keeps its state and gets the new
// policy. It also keeps its connections if their settings are equal.
func newTarget(c Upstream, old *target, o weir.Options, own *own) (*target, error) {
	silence := grpcSilence(c.Policy.Timeouts)
	c.Policy.Timeouts = uploads(c.Policy.Timeouts)
	if d, ok := c.Dialect.(httpx.Placed); ok {
		c.Dialect = d.At(c.URL)
	}
	c.Own = c.ownOf()
	t := &target{Upstream: c, keys: keysOf(c.Keys, c.Veil), inQuery: inQueryOf(&c), silence: silence, byPath: c.saysWhat()}
	if c.Priority != nil {
		t.priority = c.Priority.Priority()
	}
	if old != nil && origin(old.URL) == origin(c.URL) {
		if err := old.weir.Set(c.Policy); err != nil {
			return nil, err
		}
		t.weir = old.weir
	} else {
		u, err := weir.New(c.Name, c.Policy, o)
		if err != nil {
			return nil, err
		}
		t.weir = u
		if old != nil {
			staysPaused(u, old.weir, o.Fleet != nil)
		}
	}
	timeouts := httpx.BaseTimeouts(t.weir.Policy())
	t.base = newBase(timeouts, &c, own)
	if old != nil && old.weir == t.weir && old.HTTP2 == c.HTTP2 && old.Idle == c.Idle && reflect.DeepEqual(old.base.Timeouts, timeouts) {
		t.base = old.base
	}
	t.transport = &httpx.Transport{Upstream: t.weir, Base: attempts{t.base.sends}, Call: t.call, Judge: t.judge, Replay: c.Replay, Strict: c.Full == FullRefuse}
	return t, nil
}

// staysPaused copies an operator's pauses to an upstream whose URL changed. An operator who stopped all calls before a
// move does not want them to resume on reload. Pauses that a fleet shares come from its store.
func staysPaused(u, old *weir.Upstream, fleet bool) {
	for _, p := range old.Look(0).Pauses {
		if here := p.Reason == pause.Here; here || p.Reason == pause.Hand && !fleet {
			left := p.Left
			if p.Open {
				left = 0
			}
			_ = u.Pause(p.Subject(), left, here) // a pause of a removed limit is dropped
		}
	}
}

// Default bounds of uploads. They apply to the sidecar only, because a program's own request body may be slow.
const (
	uploadIdle = time.Minute
	uploadRate = 100 // bytes per second
)

// uploads returns the timeouts with defaults for uploads.
func uploads(t weir.Timeouts) weir.Timeouts {
	t.UploadIdle, t.UploadRate = cmp.Or(t.UploadIdle, t.Idle, uploadIdle), cmp.Or(t.UploadRate, uploadRate)
	return t
}

// A base is the transport of single attempts, with the timeouts that it was built for.
type base struct {
	*http.Transport
	sends    http.RoundTripper
	Timeouts weir.Timeouts
}

// newBase builds the transport of an upstream: net/http's transport behind direct.Transport, which handles plain
// requests without a large body. HTTP/2-only upstreams and those with Dial use net/http's alone.
func newBase(timeouts weir.Timeouts, u *Upstream, own *own) base {
	whole := httpx.NewBase(timeouts, 0)
	u.Idle.in(whole)
	if u.Dial != nil {
		whole.DialContext = u.Dial
	}
	whole.DialContext = own.elsewhere(whole.DialContext)
	if u.Roots != nil {
		whole.TLSClientConfig = &tls.Config{RootCAs: u.Roots, MinVersion: tls.VersionTLS12}
	}
	if u.HTTP2 {
		onlyHTTP2(whole, u.URL.Scheme)
	}
	if u.HTTP2 || u.Dial != nil {
		return base{whole, withNews{whole}, timeouts}
	}
	return base{whole, &direct.Transport{
		Dial: whole.DialContext, Next: withNews{whole}, News: newsOf,
		Most: whole.MaxIdleConnsPerHost, IdleTime: whole.IdleConnTimeout, Headers: whole.ResponseHeaderTimeout,
	}, timeouts}
}

// Ping intervals of HTTP/2-only connections. gRPC servers close connections that receive more than one ping every five
// minutes without other traffic. The operating system detects dead connections earlier (httpx.NewBase).
const (
	ping = 6 * time.Minute
	pong = 15 * time.Second
)

// onlyHTTP2 restricts a transport to HTTP/2.
func onlyHTTP2(t *http.Transport, scheme string) {
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(scheme == "https")
	t.Protocols.SetUnencryptedHTTP2(scheme == "http")
	t.HTTP2.SendPingTimeout, t.HTTP2.PingTimeout = ping, pong
}

// origin identifies an API. The path is not part of it.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// call describes a forwarded request to the policy.
func (t *target) call(r *http.Request) weir.Call {
	trip := tripOf(r.Context())
	c := weir.Call{ID: trip.id, Note: trip.note(), Streams: trip.stream}
	if trip.bounded && trip.table.access.ConnLimit != nil {
		c.WaitingRoom = (*waitingRoom)(trip)
	}
	if t.priority != nil {
		c.Priority = t.priority(trip.came)
	}
	if s := trip.session; s != nil {
		c.Operation, c.Keys = websocket.Connect, s.Keys
		t.identify(&c, trip)
		return c
	}
	c.Keys = t.values(trip.came)
	if r.ContentLength > 0 && t.countsBytes() {
		c.Cost = map[string]int64{"bytes": r.ContentLength}
	}
	if trip.exchange != nil {
		trip.exchange.Describe(&c)
	}
	t.identify(&c, trip)
	if trip.priority != nil {
		c.Priority = *trip.priority
	}
	return c
}

// values returns the key of each scope for a request, or nil if there are no scopes.
func (t *target) values(r *http.Request) map[string]string {
	if len(t.keys) == 0 {
		return nil
	}
	all := make(map[string]string, len(t.keys))
	for _, k := range t.keys {
		all[k.scope] = k.read(r)
	}
	return all
}

func (t *target) countsBytes() bool {
	for _, l := range t.Policy.Limits {
		if l.Unit == "bytes" {
			return true
		}
	}
	return false
}

// routes returns the configured routes, or the default route.
func (u *Upstream) routes() []Route {
	if len(u.Routes) == 0 {
		return []Route{{Path: "/" + u.Name + "/", Strip: true}}
	}
	return u.Routes
}

// byPrecedence sorts routes so that the first match wins.
func byPrecedence(a, b entry) int {
	if (a.Host != "") != (b.Host != "") {
		return cmp.Compare(len(b.Host), len(a.Host))
	}
	return cmp.Compare(len(b.Path), len(a.Path))
}
