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

// A Server serves acquire and report requests. Its fields must not change after the first request. It is then safe
// for concurrent use. The code that creates it must close it.
type Server struct {
	Upstreams func() map[string]*weir.Upstream
	Callers   func() *weir.Upstream // limits of callers, for GET /v1/limits; nil if there are none
	Auth      func() *auth.Auth     // current authentication; nil admits only callers on this machine
	Open      bool                  // without Auth, admits callers from other machines
	Hosts     func() []string       // names that callers use for a loopback address, besides localhost; nil means none
	Log       *slog.Logger          // nil means no log
	Events    Events

	// Rights returns the rights of a caller. nil means the zero Rights for every caller.
	Rights func(caller string) Rights

	Veil *veil.Veil // hides the values of scopes; nil hides only values that look like credentials

	// Scopes returns an upstream's scopes that its policy does not contain. nil means none.
	Scopes func(upstream string) Scopes

	// Turned is called with the reason, one of Whys, when a request is turned away. It may be nil.
	Turned func(why string)

	// Jobs are the job throttles by upstream. Each is a handler of the paths below /v1/jobs/UPSTREAM. nil means none.
	// See package jobs.
	Jobs map[string]http.Handler

	// Deliveries serves a caller's requests below /v1/deliveries. nil means that there are no deliveries. See package
	// deliveries.
	Deliveries func(w http.ResponseWriter, r *http.Request, rest, caller string)

	// Traced returns the value of weir.Call.Note for a request. nil means no value.
	Traced func(r *http.Request, upstream string) any

	MaxWait    time.Duration // longest wait that a caller can request; 0 means 30s
	MaxPermits int           // unended permits, including acquires that wait; 0 means 65,536

	once sync.Once
	out  *permits
	own  own
}

// Whys are the reasons for turning requests away.
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

// Held returns the number of permits and of acquires that wait.
func (s *Server) Held() int { return s.permits().len() }

// Close ends all permits as expired, and prevents new ones. Call it when no requests are in progress.
func (s *Server) Close() {
	if n := s.permits().close(); n > 0 {
		s.log().LogAttrs(context.Background(), slog.LevelWarn, "permits were not reported", slog.Int("permits", n))
	}
}

// over ends expired permits.
func (s *Server) over(all []*held) {
	for _, h := range all {
		s.lose(h)
		tell(s.Events.Expired, Expired{h.about, time.Since(h.from)})
	}
}

// lose ends an unreported permit. A panic of a gate must not end the process.
func (s *Server) lose(h *held) {
	defer func() {
		if v := recover(); v != nil {
			s.log().LogAttrs(context.Background(), slog.LevelError, "panic", slog.String("upstream", h.about.Upstream), slog.Any("value", v))
		}
	}()
	h.end(lost)
}

// A route is the method and handler of a path.
type route struct {
	method string
	serve  func(w http.ResponseWriter, r *http.Request) *refuse.Facts
}

// Handler returns the handler of the API.
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

// rescue responds for a handler that panicked. Only the log contains the cause.
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

// known admits authenticated callers.
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

// turned reports that a request was turned away.
func (s *Server) turned(why string) {
	if s.Turned != nil {
		s.Turned(why)
	}
}

// read reads the fields of a body with one JSON object.
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

// buffers are for request and response bodies. Values that outlive a request must not share their memory.
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
