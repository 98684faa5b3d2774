// Package proxy is the sidecar: it takes requests for the upstreams it was
// configured with, sends them on under their policies, and streams the answers
// back. Raw path and query and the body are passed on byte for byte, and headers
// as they are but for three kinds: those of one connection (RFC 9110 7.6.1), those
// that tell where a request came from or what it is really for, and which anybody
// could forge (X-Forwarded-*, X-Real-Ip, X-Original-Url, ...), and X-Weir-*, which
// is said to weir by callers, and to callers by weir.
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

// An Upstream is an API that requests are sent on to.
type Upstream struct {
	Name     string
	URL      *url.URL // scheme and host, and perhaps a path that is put before the request's
	Hosts    []string // whose requests Forward sends, with * for any characters; none means that of URL
	Routes   []Route  // how requests find it; none means the path /NAME/, stripped
	Policy   weir.Policy
	Replay   int64                   // how much of a body is kept to send it again; 0 means httpx.DefaultReplay, below 0 nothing
	MaxBody  int64                   // the largest body that is taken; 0 means any
	Full     Full                    // what becomes of bodies for which there is no room in memory
	Keys     map[string]httpx.Source // where the values of scopes come from
	Priority *httpx.Source           // where callers say which goes first of those that wait; nil means nowhere
	Dialect  httpx.Dialect           // what the API speaks beyond HTTP; nil means nothing
	HTTP2    bool                    // it is spoken to in HTTP/2 alone, without encryption too
	GRPC     bool                    // the dialect is that of gRPC: its bodies are as slow and silent as they like

	// Sends are headers that weir adds to requests in place of the caller's: credentials.
	Sends http.Header

	Schedule string          // of deliveries, by its name; "" means "webhook"
	Stop     bool            // dead letters stop their order keys
	GivesUp  delivery.GiveUp // what deliveries do not wait for, and do not repeat
	Callback string          // names whom to tell when a delivery is over; "" for nobody
	Keep     []string        // headers of requests that are delivered later, besides the usual ones

	Pass []string // fields that anybody could forge, in canonical form, and that are sent on nevertheless

	Idle Idle // connections that are kept

	// Dial connects with the API; nil means as the system does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Roots *x509.CertPool // that sign the API's certificate; nil means the system's

	Veil *veil.Veil // hides the values of scopes; nil hides only what looks like a credential

	Callers Callers // count requests; nil if nobody does, or the dialect

	StaleIfError time.Duration  // the age of the oldest answer that a failed GET or HEAD gets; 0 means none
	Answers      *cache.Cache   // keeps good answers for StaleIfError; nil if none are kept
	Replayed     func(Replayed) // hears of failed calls that got an earlier answer; may be nil

	Sockets *websocket.Config // of the connections of routes with WebSocket; nil if there are none

	Own map[string]Own // by the names of operations; nil if none says anything in place of its route

	PauseScope string // the scope whose value is the account of a credential; "" means that each is an account of its own

	Closed      bool // requests that are of no declared operation are refused
	Credentials bool // weir adds credentials of its own to requests, here or in another upstream that answers in its place
	Identifies  bool // the dialect refuses callers that it does not know
}

// Idle says how many connections are kept that nobody uses, and for how long; 0 means as httpx.NewBase does it. PerHost 0 means Most.
type Idle struct {
	Most, PerHost int
	For           time.Duration
}

// in lays it over what a transport does without it.
func (i Idle) in(t *http.Transport) {
	t.MaxIdleConns = cmp.Or(i.Most, t.MaxIdleConns)
	t.MaxIdleConnsPerHost = min(t.MaxIdleConns, cmp.Or(i.PerHost, t.MaxIdleConns))
	t.IdleConnTimeout = cmp.Or(i.For, t.IdleConnTimeout)
}

// Full says what becomes of a body that was to be held in memory when what the process may hold is full.
type Full uint8

const (
	FullDefault Full = iota // as the dialect does it: without one the body passes, language models refuse it
	FullPass                // it is sent on, but once; what it asks of a model is estimated by its size
	FullRefuse              // 503, or 413 if it could never be held
)

// A Route leads requests to an upstream. Host and Path must both match; of
// several routes the one with a host wins, then the one with the longest path.
type Route struct {
	Host  string // without port, in any case; "" means any
	Path  string // a prefix of whole segments; "" means any
	Strip bool   // take Path off before sending on

	// Stream says that bodies of requests are streams here: they may be silent and slow.
	Stream bool

	// WebSocket says that requests which ask for one get a connection whose messages are limited.
	WebSocket bool

	Deliver Deliver
	Keep    Keep // of first answers by Idempotency-Key
}

// A target is an upstream in use.
type target struct {
	Upstream
	weir      *weir.Upstream
	transport *httpx.Transport
	base      base
	keys      []key
	inQuery   []string                           // parameters that must not stand in a query twice
	silence   time.Duration                      // longest of a call of gRPC in both directions; 0 or less if there is no bound
	priority  func(*http.Request) limit.Priority // nil if callers say none
	byPath    bool                               // the path of a request says what is asked for
}

// newTarget puts an upstream into use. What is in use by that name already goes
// on, with the new policy, if it is the same API; its connections are kept if
// they may be.
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
	t.transport = &httpx.Transport{Upstream: t.weir, Base: attempts{t.base.sends}, Call: t.call, Judge: judge, Replay: c.Replay, Strict: c.Full == FullRefuse}
	return t, nil
}

// staysPaused has what a person has paused stay so at another URL: who has stopped all calls to move somewhere else does not want them to go on
// as soon as the file is read. Pauses that a fleet shares come from its store.
func staysPaused(u, old *weir.Upstream, fleet bool) {
	for _, p := range old.Look(0).Pauses {
		if here := p.Reason == pause.Here; here || p.Reason == pause.Hand && !fleet {
			left := p.Left
			if p.Open {
				left = 0
			}
			_ = u.Pause(p.Subject(), left, here) // of a limit that is gone, nobody
		}
	}
}

// The bounds of uploads, which come from elsewhere: a program's own body may be slow.
const (
	uploadIdle = time.Minute
	uploadRate = 100 // bytes a second
)

// uploads are timeouts with bounds of uploads.
func uploads(t weir.Timeouts) weir.Timeouts {
	t.UploadIdle, t.UploadRate = cmp.Or(t.UploadIdle, t.Idle, uploadIdle), cmp.Or(t.UploadRate, uploadRate)
	return t
}

// A base is the transport of single attempts, and what it was made for.
type base struct {
	*http.Transport
	sends    http.RoundTripper
	Timeouts weir.Timeouts
}

// newBase makes the transport of an upstream: net/http's, and before it one of ours for plain requests without a large
// body, unless somebody else makes the connections.
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

// The pings of HTTP/2 alone. Servers of gRPC end connections on which pings come more often than every
// five minutes while nothing else does; what has died is found out by the system before (httpx.NewBase).
const (
	ping = 6 * time.Minute
	pong = 15 * time.Second
)

// onlyHTTP2 has a transport speak HTTP/2 and nothing else.
func onlyHTTP2(t *http.Transport, scheme string) {
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(scheme == "https")
	t.Protocols.SetUnencryptedHTTP2(scheme == "http")
	t.HTTP2.SendPingTimeout, t.HTTP2.PingTimeout = ping, pong
}

// origin is what tells one API from another: a path, or a slash at its end, makes
// no other of it.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// call is what the policy needs to know of a request that is sent on.
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

// values are those of the scopes for a request; nil if there are none.
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

// routes are the routes in force.
func (u *Upstream) routes() []Route {
	if len(u.Routes) == 0 {
		return []Route{{Path: "/" + u.Name + "/", Strip: true}}
	}
	return u.Routes
}

// byPrecedence sorts routes so that the first that matches is the right one.
func byPrecedence(a, b entry) int {
	if (a.Host != "") != (b.Host != "") {
		return cmp.Compare(len(b.Host), len(a.Host))
	}
	return cmp.Compare(len(b.Path), len(a.Path))
}
