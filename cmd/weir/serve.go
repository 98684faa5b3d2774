package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/config"
	"github.com/seed1158cd35/weir/observe/logs"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/proxy"
	"github.com/seed1158cd35/weir/status"
)

// serve runs the sidecar until it is told to stop.
func serve(ctx context.Context, w world) error {
	f := w.flags("serve", "")
	path := f.String("config", "weir.yaml", "the configuration file; SIGHUP reads it again")
	if err := w.parse(f, 0); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)

	s, err := newServer(*path, w)
	if err != nil {
		return err
	}
	return s.run(ctx, reload)
}

// A server is a running sidecar.
type server struct {
	path    string
	env     func(string) (string, bool)
	level   *slog.LevelVar
	log     *slog.Logger
	file    *config.File
	proxy   *proxy.Proxy
	metrics *weirprom.Metrics
	page    *status.Page
	cert    atomic.Pointer[tls.Certificate]
	main    net.Listener
	admin   net.Listener // nil if there is none
}

// newServer reads the file, and listens.
func newServer(path string, w world) (*server, error) {
	file, err := config.Load(path, w.env)
	if err != nil {
		return nil, err
	}
	s := &server{path: path, env: w.env, file: file, level: new(slog.LevelVar)}
	s.level.Set(file.Log)
	s.log = slog.New(slog.NewJSONHandler(w.err, &slog.HandlerOptions{Level: s.level}))

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.metrics = weirprom.New(registry)
	events := weir.Tee(s.metrics.Events(), logs.Events(s.log))
	if s.proxy, err = proxy.New(file.Upstreams, events, s.log); err != nil {
		return nil, err
	}
	s.watch()
	s.page = &status.Page{
		Version: version(), Started: time.Now(), Upstreams: s.proxy.Upstreams,
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	}
	return s, s.listen()
}

// watch lets the metrics know which upstreams there are.
func (s *server) watch() {
	for _, u := range s.proxy.Upstreams() {
		s.metrics.Watch(u)
	}
}

func (s *server) listen() (err error) {
	if err := s.loadCert(s.file); err != nil {
		return err
	}
	if s.main, err = net.Listen("tcp", s.file.Listen); err != nil {
		return fmt.Errorf("listen: %w; is another weir running? set listen to a free address", err)
	}
	if s.file.Admin == "" {
		return nil
	}
	if s.admin, err = net.Listen("tcp", s.file.Admin); err != nil {
		_ = s.main.Close()
		return fmt.Errorf("listen for admin: %w; set admin to a free address, or to off", err)
	}
	return nil
}

func (s *server) loadCert(f *config.File) error {
	if f.TLS == nil {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(f.TLS.Cert, f.TLS.Key)
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	s.cert.Store(&cert)
	return nil
}

// run serves until ctx ends and calls under way have ended too, or taken too
// long.
func (s *server) run(ctx context.Context, reload <-chan os.Signal) error {
	front, back := s.front(), s.back()
	failed := make(chan error, 2)
	go func() { failed <- front.Serve(s.secured(s.main)) }()
	if s.admin != nil {
		go func() { failed <- back.Serve(s.admin) }()
		defer back.Close()
	}
	s.announce()
	for {
		select {
		case <-reload:
			s.reload()
		case err := <-failed:
			return err
		case <-ctx.Done():
			return s.drain(front)
		}
	}
}

func (s *server) announce() {
	attrs := []any{"listen", s.main.Addr().String(), "tls", s.file.TLS != nil, "upstreams", len(s.file.Upstreams), "version", version()}
	if s.admin != nil {
		attrs = append(attrs, "admin", s.admin.Addr().String())
	}
	s.log.Info("serving", attrs...)
}

// front is the server for calls. It has no timeout for whole requests or
// answers: they may be streams.
func (s *server) front() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true) // some SDKs speak it to any http:// address
	return &http.Server{
		Handler:           s.proxy,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    int(s.file.MaxHeader),
		ErrorLog:          log.New(io.Discard, "", 0),

		DisableGeneralOptionsHandler: true, // OPTIONS * would be answered as if by the upstream
	}
}

func (s *server) back() *http.Server {
	return &http.Server{
		Handler: s.page.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// secured is the listener with TLS if there is a certificate. The certificate is
// looked up for each connection, so that it can be renewed.
func (s *server) secured(l net.Listener) net.Listener {
	if s.file.TLS == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil },
	})
}

// reload reads the file again. A file with mistakes changes nothing and is told
// of; so are changes that need a new start.
func (s *server) reload() {
	next, err := config.Load(s.path, s.env)
	if err == nil && (next.Listen != s.file.Listen || next.Admin != s.file.Admin || (next.TLS == nil) != (s.file.TLS == nil)) {
		s.log.Warn("reload: listen, admin and turning tls on or off need a new start; the rest is taken over")
	}
	if err == nil {
		err = s.loadCert(next)
	}
	if err == nil {
		err = s.proxy.Set(next.Upstreams)
	}
	if err != nil {
		s.log.Error("reload: nothing was changed", "error", err.Error())
		return
	}
	for _, u := range s.file.Upstreams {
		if s.proxy.Upstreams()[u.Name] == nil {
			s.metrics.Forget(u.Name)
		}
	}
	next.Listen, next.Admin, next.TLS = s.file.Listen, s.file.Admin, s.file.TLS
	s.file = next
	s.level.Set(next.Log)
	s.watch()
	s.log.Info("reloaded", "upstreams", len(next.Upstreams))
}

// drain lets calls under way end.
func (s *server) drain(front *http.Server) error {
	s.page.Draining.Store(true)
	s.log.Info("draining", "for at most", s.file.Drain.String())
	ctx, cancel := context.WithTimeout(context.Background(), s.file.Drain)
	defer cancel()
	err := front.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		_ = front.Close()
		s.log.Warn("stopped with calls under way", "after", s.file.Drain.String())
		return nil
	}
	s.log.Info("stopped")
	return err
}
