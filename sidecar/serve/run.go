package serve

import (
	"context"
	"os"
	"time"
)

// Run serves until ctx ends or a stop signal arrives, and then until calls in flight have ended or the drain time is
// over.
func (s *Server) Run(ctx context.Context, reload, stop <-chan os.Signal) error {
	calls, cut := context.WithCancel(context.Background())
	defer cut()
	defer s.tells.close(s.log)
	defer s.closeTraces()
	defer s.leave()
	defer s.kept.close() // before leave, which closes the store
	defer s.models.close()
	if s.fleet != nil {
		s.fleet.Start()
	}
	s.deliveries.start()
	defer s.endDeliveries()
	defer s.closeMeter() // while the metrics' sources still exist
	back := s.back()
	failed := make(chan error, 4)
	s.decider.start(calls, s, failed)
	calling, admin := s.door(s.front(calls)), s.admin // here, because a reload changes the file
	go func() { failed <- calling.serve() }()
	if s.admin != nil {
		admin = s.securedAdmin(s.connLimits[atAdmin].Listen(admin))
		go func() { failed <- back.Serve(admin) }()
		defer back.Close()
	}
	s.announce()
	s.with.Tell(Ready, "serving")
	beats, unbeat := s.beats()
	defer unbeat()
	if s.finder != nil {
		s.fleet.Attend(s.finder.run)
	}
	defer s.stopDeciding()
	go s.board.Run(calls)
	go s.kept.run(calls)
	go s.watchKeys(calls)
	rechecks := time.NewTicker(rechecking)
	defer rechecks.Stop()
	for {
		select {
		case <-reload:
			s.again()
		case answer := <-s.asks:
			answer <- s.again()
		case <-beats:
			s.with.Tell(Alive, "")
		case <-rechecks.C:
			s.tells.recheck(s.names(), s.upstreams())
		case err := <-failed:
			return err
		case <-ctx.Done():
			return s.end(calling, stop)
		case <-stop:
			return s.end(calling, stop)
		}
	}
}

// beats returns a channel that ticks as often as Options.Beat asks for.
func (s *Server) beats() (<-chan time.Time, func()) {
	if s.with.Beat <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(s.with.Beat)
	return t.C, t.Stop
}

// rechecking is how often weir checks whether the breakers in notifications still exist. Calls in flight may open a
// breaker that a reload has replaced.
const rechecking = time.Minute

// stopDeciding ends the decisions in progress.
func (s *Server) stopDeciding() {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	s.decider.stop(ctx)
}

func (s *Server) announce() {
	attrs := []any{"listen", s.main.Addr().String(), "tls", s.file.TLS != nil, "upstreams", len(s.file.Upstreams), "version", s.with.Version}
	if s.admin != nil {
		attrs = append(attrs, "admin", s.admin.Addr().String())
	}
	if s.store != nil {
		attrs = append(attrs, "store", s.file.Store.Kind(), "client", s.fleet.Client())
	}
	if d := s.decider; d != nil && d.front != nil {
		attrs = append(attrs, "decide", d.front.Addr().String())
	}
	if d := s.decider; d != nil && d.grpc != nil {
		attrs = append(attrs, "decide.grpc", d.grpc.Addr().String())
	}
	s.log.Info("serving", attrs...)
}
