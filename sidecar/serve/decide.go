package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/decide"
	"github.com/seed1158cd35/weir/sidecar/envoy"
	"github.com/seed1158cd35/weir/sidecar/plain"
)

// A decider answers requests for decisions over HTTP, and from Envoy over gRPC. Parts that the file does not configure
// are nil.
type decider struct {
	auth  atomic.Pointer[auth.Auth]
	about atomic.Pointer[about]
	api   *decide.Server
	door  *door // nil until it serves
	front net.Listener
	envoy *envoy.Server
	grpc  net.Listener
}

// An about holds the rights of callers, and the scopes and hosts that they may name.
type about struct {
	rights map[string]decide.Rights
	scopes map[string]decide.Scopes
	hosts  []string
}

// aboutOf returns the about of a file, with the hosts of the listener in force.
func aboutOf(file *config.File, inForce *config.Decide) *about {
	return &about{file.Decide.Rights, file.Scopes(), slices.Concat(inForce.Hosts, file.Hosts)}
}

// newDecider builds the decider and listens. store keeps Envoy's limits.
func (s *Server) newDecider(store fleet.Store) (err error) {
	c := s.file.Decide
	if c == nil {
		return nil
	}
	d := &decider{}
	who, err := c.Auth(s.with.Env, os.ReadFile)
	if err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	d.auth.Store(who)
	d.about.Store(aboutOf(s.file, c))
	if c.Listen != "" {
		throttles, err := s.newJobs(store)
		if err != nil {
			return err
		}
		d.api = &decide.Server{
			Jobs:      throttles,
			Upstreams: s.proxy.Upstreams, Auth: d.auth.Load, Open: c.Open, Hosts: func() []string { return d.about.Load().hosts },
			Rights: func(caller string) decide.Rights { return d.about.Load().rights[caller] },
			Scopes: func(upstream string) decide.Scopes { return d.about.Load().scopes[upstream] },
			Veil:   s.veil, Callers: s.models.counted, Deliveries: s.deliveries.callers(),
			Log: s.log, MaxWait: c.MaxWait, MaxPermits: c.MaxPermits, Turned: func(why string) { s.turnedAway.Refused("decide", why) },
		}
		if t := s.traces.Tracer; t != nil {
			d.api.Traced = func(r *http.Request, upstream string) any { return t.Decision(r, "decide "+upstream) }
		}
		if d.front, err = s.with.Listen(c.Listen); err != nil {
			return fmt.Errorf("decide: listen: %w; set it to a free address", err)
		}
	}
	if c.GRPC != "" {
		if err = d.newEnvoy(s, c, store); err != nil {
			return err
		}
	}
	s.decider = d
	return nil
}

func (d *decider) newEnvoy(s *Server, c *config.Decide, store fleet.Store) (err error) {
	o := envoy.Options{Auth: d.check, Streams: uint32(s.connLimits[atGRPC].Bounds().Streams), Veil: s.veil, Tracer: s.traces.Tracer, Events: envoy.Events{Reloaded: func(e envoy.Reload) {
		if e.Err != nil {
			s.log.Error("rules for Envoy: cannot read them; the earlier rules stay in force", "error", e.Err.Error())
		} else {
			s.log.Info("rules for Envoy: read")
		}
	}}}
	if s.file.TLS != nil {
		o.TLS = auth.TLS(s.tls(), d.auth.Load, false)
	}
	if d.envoy, err = envoy.New(c.Envoy, store, o); err != nil {
		return fmt.Errorf("decide: rules: %w", err)
	}
	if d.grpc, err = s.with.Listen(c.GRPC); err != nil {
		return fmt.Errorf("decide: grpc: %w; set it to a free address", err)
	}
	return nil
}

func (d *decider) check(authorization string, t *tls.ConnectionState) (string, error) {
	return d.auth.Load().Check(authorization, t)
}

// listeners returns the listeners; nil entries are not configured.
func (d *decider) listeners() []net.Listener {
	if d == nil {
		return nil
	}
	return []net.Listener{d.front, d.grpc}
}

// start serves. Errors go to failed.
func (d *decider) start(ctx context.Context, s *Server, failed chan<- error) {
	if d == nil {
		return
	}
	if d.front != nil {
		server := &http.Server{
			Handler: s.connLimits[atDecide].Handler(d.api.Handler()), ConnContext: connlimit.Context, HTTP2: s.connLimits.streams(atDecide), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
			WriteTimeout: max(s.file.Decide.MaxWait, s.longestJobWait()) + time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
			ErrorLog: log.New(complaints{s.log}, "", 0),
		}
		l := s.connLimits[atDecide].Listen(d.front)
		if s.file.TLS != nil {
			d.door = &door{http: server, main: tls.NewListener(l, auth.TLS(s.tls(), d.auth.Load, false))}
		} else {
			p := plain.New(l, server, "POST /v1/acquire", "POST /v1/report")
			d.door = &door{http: server, main: p, plain: p}
		}
		go func() { failed <- d.door.serve() }()
	}
	if d.envoy != nil {
		l := s.connLimits[atGRPC].Hold(d.grpc)
		go func() { failed <- d.envoy.Serve(l) }()
		go d.envoy.Watch(ctx, s.file.Decide.Reload)
	}
}

// prepare reads the settings that can change while weir runs: callers and rules. put applies it.
func (d *decider) prepare(s *Server, next *config.File) (put func(), err error) {
	if d == nil || next.Decide == nil {
		return func() {}, nil
	}
	inForce := s.file.Decide.Config // the current addresses: changing them needs a restart
	inForce.Tokens, inForce.ClientCA = next.Decide.Tokens, next.Decide.ClientCA
	if err := inForce.Validate(); err != nil {
		return nil, fmt.Errorf("decide: listen on the current addresses: %w", err)
	}
	who, err := next.Decide.Auth(s.with.Env, os.ReadFile)
	if err != nil {
		return nil, fmt.Errorf("decide: %w", err)
	}
	rules := func() {}
	if d.envoy != nil {
		if rules, err = d.envoy.Prepare(); err != nil {
			return nil, fmt.Errorf("decide: rules: %w", err)
		}
	}
	return func() {
		d.auth.Store(who)
		d.about.Store(aboutOf(next, s.file.Decide))
		rules()
	}, nil
}

// stop ends the decider. Decisions in progress have until ctx ends.
func (d *decider) stop(ctx context.Context) {
	if d == nil {
		return
	}
	if d.door != nil {
		_ = d.door.shutdown(ctx) // returns with ctx, even if requests remain
		d.api.Close()
	}
	if d.envoy != nil {
		d.envoy.Shutdown(ctx)
	}
}
