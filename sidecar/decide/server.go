package decide

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/hosts"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/veil"
)

// openAPIText describes the API, in OpenAPI 3.1.
//
//go:embed openapi.yaml
var openAPIText []byte

const (
	defaultWait    = 30 * time.Second
	defaultPermits = 1 << 16
	longestBody    = 64 << 10
)

// A Server answers acquires and reports. Its fields are not changed once it is
// used; it is then safe for concurrent use. Whoever made it closes it.
type Server struct {
	Upstreams func() map[string]*weir.Upstream
	Callers   func() *weir.Upstream // the limits of callers, by which GET /v1/limits answers; nil if there are none
	Auth      func() *auth.Auth     // who may ask, now; nil means everyone on this machine, and nobody else
	Open      bool                  // without Auth, lets callers in who come from elsewhere
	Hosts     func() []string       // names under which callers know a loopback address, besides localhost; nil means none
	Log       *slog.Logger          // nil means no log
	Events    Events

	// Rights are those of a caller; nil means the zero Rights for everyone.
	Rights func(caller string) Rights

	Veil *veil.Veil // hides the values of scopes; nil hides only what looks like a credential

	// Scopes are what is known of an upstream's scopes besides its policy; nil means nothing.
	Scopes func(upstream string) Scopes

	// Turned hears why a request was turned away: one of Whys; nil means unheard.
	Turned func(why string)

	// Jobs are the throttles of jobs by upstream, each a handler of paths below
	// /v1/jobs/UPSTREAM; nil means none. See package jobs.
	Jobs map[string]http.Handler

	// Deliveries answers requests of a caller below /v1/deliveries; nil if nothing is delivered
	// later. See package deliveries.
	Deliveries func(w http.ResponseWriter, r *http.Request, rest, caller string)

	// Traced is what weir.Call.Note is to be of a call that a request asks about; nil means nothing.
	Traced func(r *http.Request, upstream string) any

	MaxWait    time.Duration // longest wait that a caller can ask for; 0 means 30s
	MaxPermits int           // permits out at once, those that are waited for included; 0 means 65,536

	once sync.Once
	out  *permits
	own  own
}

// Whys are why requests are turned away.
var Whys = []string{"host", "caller", "origin", "full", "permits", "waiting", "keys", "pauses"}

func (s *Server) permits() *permits {
	s.once.Do(func() { s.out = newPermits(cmp.Or(s.MaxPermits, defaultPermits), s.over) })
	return s.out
}

func (s *Server) maxWait() time.Duration { return cmp.Or(s.MaxWait, defaultWait) }

func (s *Server) auth() *auth.Auth {
	if s.Auth == nil {
		return nil
	}
	return s.Auth()
}

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

// Held is how many permits are out or waited for.
func (s *Server) Held() int { return s.permits().len() }

// Close ends the permits that are out, as if they had expired, and gives none any
// more. Call it when no requests are under way.
func (s *Server) Close() {
	if n := s.permits().close(); n > 0 {
		s.log().LogAttrs(context.Background(), slog.LevelWarn, "permits were not reported", slog.Int("permits", n))
	}
}

// over ends permits whose time is over.
func (s *Server) over(all []*held) {
	for _, h := range all {
		s.lose(h)
		tell(s.Events.Expired, Expired{h.about, time.Since(h.from)})
	}
}

// lose ends a permit of which nobody told. A gate that panics must not take the
// program with it.
func (s *Server) lose(h *held) {
	defer func() {
		if v := recover(); v != nil {
			s.log().LogAttrs(context.Background(), slog.LevelError, "panic", slog.String("upstream", h.about.Upstream), slog.Any("value", v))
		}
	}()
	h.end(lost)
}

// A route is what is served under a path.
type route struct {
	method string
	serve  func(w http.ResponseWriter, r *http.Request) *refuse.Facts
}

// Handler is the API.
func (s *Server) Handler() http.Handler {
	routes := map[string]route{
		"/v1/acquire":   {http.MethodPost, s.known(s.acquire)},
		"/v1/report":    {http.MethodPost, s.known(s.report)},
		"/v1/limits":    {http.MethodGet, s.known(s.limits)},
		"/healthz":      {http.MethodGet, health},
		"/openapi.yaml": {http.MethodGet, openAPI},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.rescue(w, r)
		if f := s.serve(routes, w, r); f != nil {
			write(w, f)
		}
	})
}

func (s *Server) serve(routes map[string]route, w http.ResponseWriter, r *http.Request) *refuse.Facts {
	if !hosts.Ours(r, s.names()) {
		s.turned("host")
		return failed(http.StatusMisdirectedRequest, refuse.ValidationError,
			"host %s: is not a name of this listener; use localhost, its address, or one of hosts", quoted(r.Host))
	}
	if hosts.Foreign(r, nil) {
		s.turned("origin")
		return failed(http.StatusForbidden, refuse.Forbidden, "a browser sent this request for a page of another site (Origin %s); only programs may request decisions", quoted(r.Header.Get("Origin")))
	}
	at, ok := routes[r.URL.Path]
	if !ok && strings.HasPrefix(r.URL.Path, jobsPath) {
		return s.jobs(w, r)
	}
	if rest, is := strings.CutPrefix(r.URL.Path, deliveriesPath); is && (rest == "" || rest[0] == '/') {
		return s.deliveries(w, r, rest)
	}
	if !ok {
		return failed(http.StatusNotFound, refuse.NotFound, "path %s: unknown path; see /openapi.yaml", quoted(r.URL.Path))
	}
	if r.Method != at.method && !(r.Method == http.MethodHead && at.method == http.MethodGet) {
		w.Header().Set("Allow", at.method)
		return failed(http.StatusMethodNotAllowed, refuse.ValidationError, "method %s: want %s", quoted(r.Method), at.method)
	}
	return at.serve(w, r)
}

func (s *Server) names() []string {
	if s.Hosts == nil {
		return nil
	}
	var names []string
	for _, h := range s.Hosts() {
		names = append(names, hosts.Name(h))
	}
	return names
}

// rescue answers for a handler that panicked. What went wrong is for the log.
func (s *Server) rescue(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	s.log().LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("path", r.URL.Path), slog.Any("value", v), slog.String("stack", string(debug.Stack())))
	write(w, failed(http.StatusInternalServerError, refuse.InternalError, "internal error; see weir's log"))
}

// known lets in callers who are known.
func (s *Server) known(answer func(r *http.Request, caller string) (any, *refuse.Facts)) func(http.ResponseWriter, *http.Request) *refuse.Facts {
	return func(w http.ResponseWriter, r *http.Request) *refuse.Facts {
		caller, err := s.who(r)
		if err != nil {
			return failed(http.StatusUnauthorized, refuse.Unauthorized, "%v", err)
		}
		body, f := answer(r, caller)
		if f == nil {
			send(w, http.StatusOK, body)
		}
		return f
	}
}

func (s *Server) who(r *http.Request) (string, error) {
	a := s.auth()
	caller, err := "", error(nil)
	if a.Open() && !s.Open && auth.Remote(r) {
		err = errors.New("this weir has no tokens configured, and without them it accepts only callers on its own machine")
	} else {
		caller, err = a.Check(r.Header.Get("Authorization"), r.TLS)
	}
	if err != nil {
		s.turned("caller")
	}
	return caller, err
}

// turned tells that a request was turned away.
func (s *Server) turned(why string) {
	if s.Turned != nil {
		s.Turned(why)
	}
}

// read reads a body that is one object of JSON: its fields.
func read(r *http.Request) ([]member, *refuse.Facts) {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return nil, failed(http.StatusUnsupportedMediaType, refuse.ValidationError, "content type %s: want application/json", quoted(kind))
		}
	}
	body := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(body)
	body.Reset()
	_, err := body.ReadFrom(http.MaxBytesReader(nil, r.Body, longestBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, failed(http.StatusRequestEntityTooLarge, refuse.ValidationError, "the body is larger than %d bytes", longestBody)
	}
	if err != nil {
		return nil, failed(http.StatusBadRequest, refuse.ValidationError, "the body is incomplete")
	}
	return parse(body.Bytes())
}

// buffers are for bodies and for answers. Nothing that is kept has a part of one.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func health(w http.ResponseWriter, _ *http.Request) *refuse.Facts {
	send(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

func openAPI(w http.ResponseWriter, _ *http.Request) *refuse.Facts {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Length", strconv.Itoa(len(openAPIText)))
	_, _ = io.Copy(w, strings.NewReader(string(openAPIText)))
	return nil
}
