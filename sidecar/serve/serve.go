package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/veil"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
	"github.com/seed1158cd35/weir/observe/logs"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/observe/trace/otlp"
	"github.com/seed1158cd35/weir/sidecar/board"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
	"github.com/seed1158cd35/weir/sidecar/status"
	"github.com/seed1158cd35/weir/sidecar/stores"
)

// A Server is a sidecar. It is built by New and serves in Run. Call Run once. The other methods are safe for concurrent
// use.
type Server struct {
	path       string
	with       Options
	level      *slog.LevelVar
	log        *slog.Logger
	file       *config.File
	proxy      *proxy.Proxy
	metrics    *weirprom.Metrics
	turnedAway *weirprom.Listeners
	process    *weirprom.Process
	connLimits connLimits
	page       *status.Page
	cert       atomic.Pointer[tls.Certificate]
	main       net.Listener
	admin      net.Listener // nil if there is none
	opened     []net.Listener
	calls      *tally
	store      fleet.Store  // nil if the file names none
	fleet      *fleet.Fleet // nil if there is no store
	veil       *veil.Veil   // hides the keys by which callers are counted
	shared     *weirprom.Fleet
	finder     *finder  // checks the store; nil if there is none
	decider    *decider // nil if the file configures no decisions
	speaks     dialects
	troubles   troubles
	access     access
	models     models
	tells      escalation
	jwts       issuers
	kept       *keptCalls
	loaded     loaded
	board      *board.Board
	asks       chan chan<- error // reloads that operators request
	left       chan struct{}     // closed when the server accepts no more reload requests
	traces     traces
	hosts      []Hosts                 // from the file at the start
	keys       map[string]httpx.Source // sources of the scopes of callers, from the file at the start
	meter      *otlp.Meter             // nil if no metrics are sent by OTLP
	registry   *prometheus.Registry

	deliveries *deliveries // nil if the file configures none
}

// New reads the file at path and listens. On error it closes everything that it opened.
func New(path string, o Options) (*Server, error) {
	o = o.withDefaults()
	file, err := config.Load(path, o.Env)
	if err == nil {
		err = file.CheckEnv(o.Env)
	}
	if err != nil {
		return nil, err
	}
	o.share(file)
	s := &Server{path: path, with: o, file: file, level: new(slog.LevelVar), calls: newTally(), asks: make(chan chan<- error), left: make(chan struct{})}
	s.with.Listen = func(address string) (net.Listener, error) {
		l, err := o.Listen(address)
		if err == nil {
			s.opened = append(s.opened, l)
		}
		return l, err
	}
	if err = s.prepare(); err != nil {
		s.abandon()
		return nil, err
	}
	return s, nil
}

// abandon closes everything that an unfinished server has opened.
func (s *Server) abandon() {
	for _, l := range s.opened {
		_ = l.Close()
	}
	s.closeMeter()
	s.models.close()
	_ = s.deliveries.stop(0)
	s.kept.close()
	s.leave()
	s.tells.close(s.log)
	s.closeTraces()
}

// Log returns the server's logger.
func (s *Server) Log() *slog.Logger { return s.log }

func (s *Server) prepare() (err error) {
	o, file := s.with, s.file
	s.level.Set(file.Log)
	buffers.Heed()
	s.log = slog.New(o.logHandler(&slog.HandlerOptions{Level: s.level}))
	s.troubles.log, s.speaks.log = s.log, sdkLog(s.log)

	if s.veil, err = veilOf(file, o.Env); err != nil {
		return err
	}
	for i := range file.Upstreams {
		u := &file.Upstreams[i]
		s.hosts = append(s.hosts, Hosts{u.Name, u.URL, u.Hosts})
	}
	if file.Callers != nil {
		s.keys = file.Callers.Keys
	}
	s.warnRemoved(file)
	registry := prometheus.NewRegistry()
	s.registry = registry
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.metrics = weirprom.New(registry)
	s.metrics.ShowKeys(s.veil.Label)
	s.turnedAway = newListeners(registry)
	s.connLimits = newConnLimits(file, s.turnedAway, registry)
	weirprom.Buffers(registry)
	s.process = weirprom.NewProcess(registry, o.Version, s.countTroubles, s.leaf)
	if s.tells, err = newEscalation(file, o.Env, s.log); err != nil {
		return err
	}
	s.kept = newKeptCalls(file, s.upstreams)
	s.loaded.begin(s.path, file)
	s.board = board.New(s.log)
	if err = s.newTraces(file.Traces, registry); err != nil {
		return err
	}
	events := s.tells.events(s.metrics.Events(), s.board.Events(), s.logged(), s.kept.Events(), o.Events)
	if err = s.join(s.traces.events(events), registry); err != nil {
		return err
	}
	if err = s.newDeliveries(file.Deliveries, registry); err != nil {
		return err
	}
	if err = s.newMeter(file.Metrics, registry); err != nil {
		return err
	}
	s.watch()
	s.page = &status.Page{
		Version: o.Version, Started: time.Now(), Upstreams: s.upstreams, Called: s.proxy.Upstreams,
		Hosts: s.access.hosts, Auth: s.access.admin.Load, AuthAll: file.AdminAll, Name: s.veil.Named, Refused: func(why string) { s.turnedAway.Refused("admin", why) },
		Models: s.models.look, Runs: &s.models.runs, Log: s.log, Troubles: s.troubled, Metrics: promhttp.HandlerFor(s.gatherer(registry), promhttp.HandlerOpts{EnableOpenMetrics: true}),
		Deliveries: s.deliveries.operators(), Why: s.kept, Board: s.board.Handler(), Config: s.loaded.status, Settings: s.loaded.settings, Reload: s.ask, SignIn: s.board.SignIn,
	}
	s.board.Page = s.page
	if s.deliveries != nil {
		s.page.Counts, s.page.Letters = s.deliveries.Counts, s.deliveries
		s.tells.dead(s.deliveries.Counts)
	}
	if s.fleet != nil {
		kind := file.Store.Kind()
		s.page.Fleet = func() *status.Fleet {
			f := status.FleetOf(s.fleet, kind)
			f.Found = s.finder.status()
			return f
		}
	}
	return s.listen()
}

// logged returns the events that the log receives.
func (s *Server) logged() weir.Events {
	events := logs.Options{EachSecond: s.file.LogEach}.Events(s.log)
	if s.file.LogAttempts {
		events = weir.Tee(events, logs.Attempts(s.log))
	}
	return events
}

// join creates the upstreams. A fleet shares their limits if the file names a store.
func (s *Server) join(events weir.Events, registry prometheus.Registerer) (err error) {
	if c := s.file.Store; c != nil {
		full := c.WithDefaults()
		ctx, cancel := context.WithTimeout(context.Background(), opening)
		defer cancel()
		s.shared = weirprom.NewFleet(registry)
		if full.Kind() == "file" && hollow(full.File) {
			s.troubles.note("store "+full.File, "", "if you did not empty it, find out why it is empty; limits start full",
				errors.New("the file was empty when weir started: the usage of limits is unknown"))
		}
		if s.store = s.with.Shared; s.store == nil {
			s.store, err = openStore(ctx, full, s.with.Env, s.requested)
		}
		if err != nil {
			return err
		}
		if s.with.Store != nil {
			s.store = s.with.Store(s.store)
		}
		s.fleet = stores.Fleet(s.store, full, fleet.Options{Events: s.tells.fleet(s.shared.Events(), logs.Fleet(s.log))})
		s.shared.Watch(s.fleet)
		s.kept.shares(s.store, full.Kind(), registry)
		s.finder = &finder{kind: full.Kind(), store: s.store, fleet: s.fleet, upstreams: s.upstreams, metrics: s.shared, log: s.log}
	}
	s.models.begin(s, events, registry)
	s.models.calls = s.kept.Keeper
	if err = s.apply(s.file); err != nil {
		return err
	}
	e, err := s.readEntry(s.file)
	if err != nil {
		return err
	}
	s.access.put(e)
	s.connLimits[atCalls].SetNamed(!e.calls.Auth.Open())
	if s.proxy, err = proxy.New(nil, weir.Options{Events: events, Fleet: s.fleet}); err == nil {
		s.proxy.Traced(s.traces.Tracer)
		s.watchSockets(registry)
		err = s.proxy.SetAll(e.calls, s.file.Upstreams)
	}
	return err
}

// apply sets the dialects and credentials of a file's upstreams. On error the configuration in force is unchanged.
func (s *Server) apply(file *config.File) error {
	for i := range file.Upstreams {
		u := &file.Upstreams[i]
		u.Dial, u.Roots, u.Veil, u.Nested = s.with.Dial, s.with.Roots, s.veil, s.with.Nested
		var err error
		if u.Sends, err = file.SendsOf(u.Name, s.with.Env); err != nil {
			return err
		}
	}
	put, err := s.speaks.apply(file)
	if err == nil {
		err = s.models.apply(file, s.with.Env)
	}
	if err == nil {
		put()
	}
	return err
}

// upstreams returns the called upstreams, and the one that counts callers.
func (s *Server) upstreams() map[string]*weir.Upstream {
	all := s.proxy.Upstreams()
	if u := s.models.counted(); u != nil {
		all = maps.Clone(all)
		all[u.Name()] = u
	}
	return all
}

// requested counts the store requests of a call.
func (s *Server) requested(c dynamostore.Call) {
	upstream := c.Group
	if strings.HasPrefix(upstream, "cache/") {
		upstream = "" // cached answers belong to no upstream
	}
	if m := s.tells.metrics; m != nil {
		m.Requested(upstream, weircw.Requests{Sent: c.Requests, Failed: c.Failed, Throttled: c.Throttled, Retried: c.Retried})
	}
	if s.shared != nil && upstream != "" {
		s.shared.Requested(upstream, weirprom.Requests{Sent: c.Requests, Failed: c.Failed, Throttled: c.Throttled, Retried: c.Retried})
	}
}

// opening limits how long opening a store takes.
const opening = 10 * time.Second

// leave returns leased units and closes the store.
func (s *Server) leave() {
	if s.fleet == nil { // no store, or it could not be opened
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	if err := s.fleet.Close(ctx); err != nil {
		s.log.Warn("leased units could not be returned", "error", err.Error())
	}
	if err := s.store.Close(); err != nil {
		s.log.Warn("closing the store", "error", err.Error())
	}
}

// leaving limits how long an unreachable store or receiver delays the end of the program.
const leaving = 2 * time.Second

// watch adds the current upstreams to the metrics.
func (s *Server) watch() {
	for _, u := range s.upstreams() {
		s.metrics.Watch(u)
		s.tells.watch(u)
	}
	if s.deliveries != nil {
		for name := range s.proxy.Upstreams() {
			s.deliveries.metrics.Watch(name)
		}
	}
}

func (s *Server) listen() (err error) {
	cert, err := readCert(s.file)
	if err != nil {
		return err
	}
	s.cert.Store(cert)
	if s.main, err = s.with.Listen(s.file.Listen); err != nil {
		return fmt.Errorf("listen: %w; is another weir running? set listen to a free address", err)
	}
	store := s.store
	if store == nil {
		store = fleet.NewMemory(nil)
	}
	if err = s.newDecider(store); err != nil {
		return err
	}
	if s.file.Admin != "" {
		if s.admin, err = s.with.Listen(s.file.Admin); err != nil {
			return fmt.Errorf("listen for admin: %w; set admin to a free address, or to off", err)
		}
	}
	s.proxy.Own(s.listeners()...)
	return nil
}

// listeners returns the addresses of all listeners.
func (s *Server) listeners() (all []net.Addr) {
	for _, l := range append(s.decider.listeners(), s.main, s.admin) {
		if l != nil {
			all = append(all, l.Addr())
		}
	}
	return all
}
