package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/smithy-go/logging"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/decide"
	"github.com/seed1158cd35/weir/sidecar/stores"
)

// A server answers the function's requests for decisions.
type server struct {
	log       *slog.Logger
	upstreams map[string]*weir.Upstream
	api       *decide.Server
	http      *http.Server
	front     net.Listener
	fleet     *fleet.Fleet // nil if no limit is shared
	store     fleet.Store
	conns     *http.Transport // to DynamoDB
	telemetry string          // address of the listener for Lambda's events
	frozen    time.Time       // wall time at which the process last became ready to be frozen; zero at first
}

// usualListen is the default address.
const usualListen = "127.0.0.1:8082"

// configPath returns the path of weir.yaml.
func configPath(env func(string) (string, bool)) string {
	if path, ok := env("WEIR_CONFIG"); ok && path != "" {
		return path
	}
	if root, ok := env("LAMBDA_TASK_ROOT"); ok {
		path := filepath.Join(root, "weir.yaml")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/opt/weir.yaml"
}

// newServer reads the file, opens its store, and listens.
func newServer(ctx context.Context, w *world, log *slog.Logger) (*server, error) {
	file, err := config.Load(configPath(w.env), w.env)
	if err != nil {
		return nil, err
	}
	d := file.Decide
	if d == nil {
		d = &config.Decide{}
	}
	d.Listen = cmp.Or(d.Listen, usualListen)
	if host, _, err := net.SplitHostPort(d.Listen); err != nil || !auth.Loopback(host) {
		return nil, fmt.Errorf("decide: listen: %s: the function is on this machine; write %s", d.Listen, usualListen)
	}
	who, err := d.Auth(w.env, os.ReadFile)
	if err != nil {
		return nil, fmt.Errorf("decide: %w", err)
	}
	s := &server{log: log, upstreams: make(map[string]*weir.Upstream), conns: http.DefaultTransport.(*http.Transport).Clone(), telemetry: cmp.Or(w.telemetry, ":0")}
	if err := s.join(ctx, w, file); err != nil {
		s.leave(ctx)
		return nil, err
	}
	scopes := file.Scopes()
	s.api = &decide.Server{
		Upstreams: func() map[string]*weir.Upstream { return s.upstreams }, Auth: func() *auth.Auth { return who }, Hosts: func() []string { return d.Hosts },
		Rights: func(caller string) decide.Rights { return d.Rights[caller] }, Scopes: func(upstream string) decide.Scopes { return scopes[upstream] },
		Veil: veil.New("", file.Harmless), Log: log, MaxWait: d.MaxWait, MaxPermits: d.MaxPermits,
	}
	if s.front, err = net.Listen("tcp", d.Listen); err != nil {
		s.leave(ctx)
		return nil, fmt.Errorf("decide: listen: %w; set it to a free address", err)
	}
	if w.serving != nil {
		w.serving(s.front.Addr())
	}
	h := &http.Server{Handler: s.api.Handler(), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	s.http = h
	go func() { // it may start after the server was closed
		if err := h.Serve(s.front); !errors.Is(err, http.ErrServerClosed) {
			log.Error("decisions are no longer answered", "error", err.Error())
		}
	}()
	return s, nil
}

// join creates the upstreams. Their limits are shared if the file names a store. Leases from before a freeze are invalid after
// it. The wall clock detects this, because the monotonic clock may have been frozen as well.
func (s *server) join(ctx context.Context, w *world, file *config.File) (err error) {
	o := weir.Options{Clock: w.clock}
	if file.Store != nil {
		c := file.Store.WithDefaults()
		silent := logging.Nop{}
		if s.store, err = stores.Open(ctx, c, stores.Options{Env: w.env, Log: silent, HTTP: &http.Client{Transport: s.conns}}); err != nil {
			return err
		}
		if w.store != nil {
			s.store = w.store(s.store)
		}
		s.fleet = stores.Fleet(s.store, c, fleet.Options{Freezes: true, Clock: w.clock})
		s.fleet.Start()
		o.Fleet = s.fleet
	}
	for i := range file.Upstreams {
		u := &file.Upstreams[i]
		if s.upstreams[u.Name], err = weir.New(u.Name, u.Policy, o); err != nil {
			return err
		}
	}
	return nil
}

// flushing is the maximum delay of an invocation's end. Lambda bills it, and the next invocation waits for it.
const flushing = 50 * time.Millisecond

// flush returns leased units, because Lambda may freeze the process next.
func (s *server) flush(ctx context.Context) {
	if s.fleet != nil {
		ctx, cancel := context.WithTimeout(ctx, flushing)
		defer cancel()
		if err := s.fleet.Flush(ctx); err != nil {
			s.log.Warn("leased units could not be returned before the freeze; they expire with the lease", "error", observe.Error(err))
		}
	}
	s.frozen = time.Now().Round(0)
}

// longFrozen is the time after which connections are assumed to be dead, because a middlebox may have dropped them.
const longFrozen = 30 * time.Second

// thaw runs at the start of an invocation.
func (s *server) thaw() {
	if !s.frozen.IsZero() && time.Now().Round(0).Sub(s.frozen) > longFrozen {
		s.conns.CloseIdleConnections()
	}
}

// close stops the server.
func (s *server) close() { s.stop(context.Background(), time.Now().Add(leaving)) }

// leaving is the time that Lambda allows for shutdown, less a margin.
const leaving = 1500 * time.Millisecond

// stop answers pending requests and returns all units before a deadline.
func (s *server) stop(ctx context.Context, by time.Time) {
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	if s.http != nil {
		_ = s.http.Shutdown(ctx) // it returns when ctx ends, also with open requests
		s.api.Close()
		s.http = nil
	}
	s.leave(ctx)
}

func (s *server) leave(ctx context.Context) {
	if s.store == nil {
		return
	}
	if s.fleet != nil {
		if err := s.fleet.Close(ctx); err != nil {
			s.log.Warn("leased units could not be returned", "error", observe.Error(err))
		}
	}
	_ = s.store.Close() // closing writes nothing
	s.store, s.fleet = nil, nil
}
