package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/retry"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// A Proxy forwards requests to upstreams under their policies. It is an http.Handler and safe for concurrent use. Its
// configuration can change while it runs.
type Proxy struct {
	options weir.Options
	table   atomic.Pointer[table]
	own     own
	later   atomic.Pointer[Accepter]
	answers atomic.Pointer[delivery.Answers]
	tracer  atomic.Pointer[trace.Tracer] // nil if requests are not traced
	setting sync.Mutex
	leaving chan struct{} // closed by Drain
	left    sync.Once
	reverse *httputil.ReverseProxy // for requests that leave HTTP
	sockets websocket.Hub
}

// New returns a proxy with the zero Access. All upstreams share the options.
func New(upstreams []Upstream, o weir.Options) (*Proxy, error) {
	p := &Proxy{options: o, leaving: make(chan struct{})}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      sending{},
		FlushInterval:  -1,
		ModifyResponse: mark,
		ErrorHandler:   fail,
		BufferPool:     buffers{},
		ErrorLog:       log.New(io.Discard, "", 0), // events report every failure
	}
	return p, p.Set(upstreams)
}

// Set replaces the upstreams. Upstreams that remain keep their state, and requests in flight finish under the old
// configuration. If an upstream is invalid, Set changes nothing and returns an error.
func (p *Proxy) Set(upstreams []Upstream) error {
	var access Access
	if t := p.table.Load(); t != nil {
		access = t.access
	}
	return p.SetAll(access, upstreams)
}

// SetAll is like Set and replaces the Access in the same step.
func (p *Proxy) SetAll(d Access, upstreams []Upstream) error {
	p.setting.Lock()
	defer p.setting.Unlock()
	if err := Check(upstreams); err != nil {
		return err
	}
	t, err := newTable(d, upstreams, p.table.Load(), p.options, &p.own)
	if err != nil {
		return err
	}
	old := p.table.Swap(t)
	for name, was := range old.all() {
		if now := t.targets[name]; now == nil || now.weir != was.weir {
			was.weir.Close()
		}
	}
	p.sockets.Serves(socketsOf(upstreams))
	p.sockets.Moved()
	return nil
}

// Drain ends the waits for a delivery, and for another call under the same Idempotency-Key. Their callers can ask again
// later. Requests are served as before.
func (p *Proxy) Drain() { p.left.Do(func() { close(p.leaving) }) }

// Upstreams returns the current upstreams by name. The caller must not modify the map.
func (p *Proxy) Upstreams() map[string]*weir.Upstream { return p.table.Load().weirs }

// ServeHTTP forwards a request or answers it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var way *trip
	defer func() { way.boundRest(w, r) }()
	t := p.table.Load()
	id := correlationOf(r)
	w.Header()[httpx.CorrelationHeader] = []string{id}
	if isLook(r) && p.later.Load() != nil {
		p.look(w, r)
		return
	}
	to, path, by, who, ok := t.enter(w, r)
	if !ok {
		return
	}
	if f := t.access.take(r, who); f != nil {
		f.RetryAfter(w.Header())
		f.Write(w)
		return
	}
	defer t.access.leave(r, who)
	trip := &trip{to: to, path: path, route: *by, stream: by.Stream, id: id, who: who, table: t, counts: true, bounded: true}
	way = trip
	if f := trip.ownRoute(w, r); f != nil {
		if to := p.later.Load(); to != nil && trip.route.later(r) { // the operation is unknown, so the route decides
			(*to).Refused(*trip.notHeard(f))
		}
		respond(w, r.WithContext(trip.in(r.Context())), f)
		return
	}
	if trip.route.later(r) {
		r = trip.paced(w, r)
		done, ok := trip.charge(w, r.WithContext(trip.in(r.Context())))
		if !ok {
			return
		}
		defer done()
		p.deliver(w, r, trip)
		return
	}
	if trip.route.Deliver != DeliverNever {
		unsaid(r.Header)
	}
	if trip.route.keyed(r) {
		p.once(w, trip.paced(w, r), trip, trip.route.Keep)
		return
	}
	p.send(w, r, trip)
}

// Serve sends a request to the named upstream, without routes: the request's path is the path at the upstream. It is
// for the program's own requests, which arrive at no listener. It returns an error if there is no such upstream or the
// response breaks off.
func (p *Proxy) Serve(upstream string, w http.ResponseWriter, r *http.Request) error {
	t := p.table.Load()
	to := t.targets[upstream]
	if to == nil {
		return fmt.Errorf("proxy: unknown upstream %q", upstream)
	}
	id := correlationOf(r)
	w.Header()[httpx.CorrelationHeader] = []string{id}
	if _, f := t.problem(r); f != nil {
		f.Write(w)
		return nil
	}
	trip := &trip{to: to, path: rawPath(r), id: id, table: t}
	p.send(w, r, trip)
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	return trip.cut
}

// send forwards an admitted request.
func (p *Proxy) send(w http.ResponseWriter, r *http.Request, trip *trip) {
	to, who := trip.to, trip.who
	if who.Name != "" {
		r = r.WithContext(httpx.WithCaller(r.Context(), (*httpx.Caller)(&trip.who)))
	}
	if to.MaxBody > 0 && r.ContentLength > to.MaxBody {
		w.Header().Set("Connection", "close")
		fail(w, r, &http.MaxBytesError{Limit: to.MaxBody})
		return
	}
	stay(r.Header)
	delete(w.Header(), httpx.CorrelationHeader) // mark or fail sets it again; it must not appear twice
	if to.speaksGRPC(r) {
		var done func()
		w, r, done = quietly(w, r, to.silence)
		defer done()
	} else {
		l := to.link(w, r)
		w, r = l, l.request(r, to.base.Timeouts, trip.stream)
	}
	trip.came, trip.answer, trip.body = r, w, r.Body
	trip.traces(p.tracer.Load())
	defer trip.end()
	var f *refuse.Facts
	if to.Dialect != nil {
		f = trip.hear(to.Dialect)
	}
	if f == nil {
		if f = trip.undeclared(); f != nil {
			trip.table.access.tell(undeclared)
		}
	}
	if f != nil {
		trip.lacksKey(f)
		w.Header()[httpx.CorrelationHeader] = []string{trip.id}
		respond(w, r.WithContext(trip.in(r.Context())), f)
		return
	}
	r, enough := trip.hurried(r)
	defer enough()
	out := r.WithContext(trip.in(r.Context()))
	done, ok := trip.charge(w, out)
	if !ok {
		return
	}
	defer done()
	if m, known := r.Body.(inMemory); to.MaxBody > 0 && (!known || int64(m.Len()) > to.MaxBody) { // not in r: the server must see its own body when it decides whether to keep the connection
		out.Body = http.MaxBytesReader(w, r.Body, to.MaxBody)
	}
	p.pass(w, out, trip)
	trip.finish()
}

// enter finds the target of a request, or answers the request.
func (t *table) enter(w http.ResponseWriter, r *http.Request) (to *target, path string, by *Route, g guest, ok bool) {
	if why, f := t.problem(r); f != nil {
		t.access.refuse(w, why, f)
		return nil, "", nil, g, false
	}
	g, f := t.access.enter(r)
	if f != nil {
		t.access.stranger(w, f)
		return nil, "", nil, g, false
	}
	to, path, by, why, f := t.way(r, g)
	switch {
	case f == nil:
		return to, path, by, g, true
	case why == "":
		f.Write(w)
	default:
		t.access.refuse(w, why, f)
	}
	return nil, "", nil, g, false
}

// way finds the target of a guest's request, or returns why there is none. The Why is empty if no route matches.
func (t *table) way(r *http.Request, g guest) (*target, string, *Route, Why, *refuse.Facts) {
	to, path, rest, by, ok := t.find(r)
	if !ok {
		return nil, "", nil, "", &refuse.Facts{Status: http.StatusNotFound, Code: refuse.ValidationError, Message: "no route matches this request: see routes in the configuration",
			Details: map[string]any{"host": r.Host, "path": rawPath(r)}}
	}
	why, f := t.access.admit(r, g, to)
	if f == nil {
		why, f = to.stray(rest)
	}
	return to, path, by, why, f
}

// rewrite addresses a request to its upstream. Path and query are sent byte for byte as they came. Host is the
// upstream's, never the caller's.
func rewrite(r *httputil.ProxyRequest) {
	t := tripOf(r.In.Context())
	out, base := r.Out, t.url()
	out.Host = base.Host
	out.URL = address(base, t.path, r.In.URL)
	if out.Trailer = nil; len(r.In.Trailer) > 0 && out.Body != nil {
		body := t.to.newTrailing(r.In)
		out.Body, out.Trailer = body, body.to
	}
	t.to.dropForged(out.Header, t.at != nil)
	if t.exchange == nil {
		t.to.dropOwn(out.Header)
	}
	t.who.hide(out.Header, out.URL)
	t.ownKeys(out.Header)
	t.to.adds(out.Header)
	out.Header[httpx.CorrelationHeader] = []string{t.id}
}

// drop deletes the fields whose names have the prefix.
func drop(h http.Header, prefix string) {
	for name := range h {
		if strings.HasPrefix(name, prefix) {
			delete(h, name)
		}
	}
}

// address returns the URL of a raw path at the upstream.
func address(base *url.URL, raw string, in *url.URL) *url.URL {
	raw = strings.TrimSuffix(base.EscapedPath(), "/") + raw
	u := &url.URL{Scheme: base.Scheme, Host: base.Host, RawQuery: in.RawQuery, ForceQuery: in.ForceQuery}
	if path, err := url.PathUnescape(raw); err == nil {
		u.Path, u.RawPath = path, raw
		if u.EscapedPath() == raw {
			return u
		}
	}
	// Go would escape the path differently, so send the raw path. A path that begins with two slashes could be read as
	// a host, so write the host as well.
	u.Path, u.RawPath, u.Opaque = "", "", raw
	if strings.HasPrefix(raw, "//") {
		u.Opaque = "//" + base.Host + raw
	}
	return u
}

// mark adds weir's headers to a response. If weir gave up, they stop the retries of the caller's SDK, because weir has
// already retried.
func mark(resp *http.Response) error {
	if resp.Request == nil {
		return nil // weir's own response
	}
	t := tripOf(resp.Request.Context())
	t.bound(resp.Header)
	if t.counts && t.at == nil {
		t.points(resp.Header)
	}
	resp.Header[httpx.CorrelationHeader] = []string{t.id}
	if t.story.Attempts > 0 {
		refuse.SetFault(resp.Header, t.story.Outcome.Fault())
	}
	if t.story.Attempts != 1 {
		resp.Header.Set(AttemptsHeader, strconv.Itoa(t.story.Attempts))
	}
	if why := t.story.GaveUp; why != nil {
		resp.Header.Set(GaveUpHeader, reason(why))
		markRefused(resp.Header, why, t.story.Outcome.Hint)
		if t.story.Attempts > 1 || !errors.Is(why, retry.ErrUnsafe) {
			resp.Header.Set("X-Should-Retry", "false")
			if x, ok := t.exchange.(httpx.Quitter); ok {
				x.GaveUp(resp.Header)
			}
		}
	}
	return nil
}

// buffers provides buffers for copying bodies.
type buffers struct{}

const bufferSize = 32 << 10

var pool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func (buffers) Get() []byte  { return pool.Get().(*[bufferSize]byte)[:] }
func (buffers) Put(b []byte) { pool.Put((*[bufferSize]byte)(b)) }
