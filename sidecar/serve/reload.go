package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// ask requests a reload from the serving goroutine and waits for its result.
func (s *Server) ask(ctx context.Context, by string) error {
	s.log.Warn("operator action", "do", "reload", "by", by)
	answer := make(chan error, 1)
	select {
	case s.asks <- answer:
		return <-answer
	case <-s.left:
		return status.ErrStopping
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// again reloads the file, and reports the result.
func (s *Server) again() error {
	s.with.Tell(Reloading, "reading "+s.path)
	err := s.reload()
	s.process.Reloaded(err)
	if err != nil {
		s.loaded.failed(err)
		s.log.Error("reload: nothing was changed", "error", err.Error())
		s.with.Tell(Ready, "serving; the reload failed, and the earlier configuration stays in force: "+err.Error())
		return err
	}
	s.with.Tell(Ready, "serving")
	return nil
}

// warnRemoved logs each removed or renamed field of a file.
func (s *Server) warnRemoved(f *config.File) {
	for _, c := range f.Removed() {
		s.log.Warn("setting is removed or renamed", "at", fmt.Sprintf("%s:%d", c.File, c.Line), "field", c.Field, "problem", c.Problem, "instead", c.Hint)
	}
}

// reload reloads the file. A file with errors changes nothing.
func (s *Server) reload() error {
	next, err := config.Load(s.path, s.with.Env)
	if err == nil {
		if next.Store == nil && s.with.Shared != nil {
			next.Store = s.file.Store
		}
		err = next.CheckEnv(s.with.Env)
	}
	var cert *tls.Certificate
	if err == nil {
		cert, err = readCert(next)
	}
	if err == nil {
		err = s.unseen(next)
	}
	if err == nil {
		err = s.disowned(next)
	}
	if err == nil {
		err = s.unkept(next)
	}
	if err == nil {
		err = s.untold(next)
	}
	var e entry
	if err == nil {
		e, err = s.readEntry(next)
	}
	if err == nil {
		err = proxy.Check(next.Upstreams)
	}
	var decides func()
	if err == nil {
		decides, err = s.decider.prepare(s, next)
	}
	var unknown string
	if err == nil { // before the first heartbeats tell the store about added upstreams
		unknown = s.unknown(next)
	}
	if err == nil { // the first step with an effect, and the last that can fail
		err = s.apply(next)
	}
	if err == nil {
		err = s.proxy.SetAll(e.calls, next.Upstreams)
	}
	if err != nil {
		return err
	}
	decides()
	s.deliveries.moved()
	s.access.put(e)
	s.connLimits[atCalls].SetNamed(!e.calls.Auth.Open())
	s.loaded.again(next, s.keep(next), unknown)
	if cert != nil {
		s.cert.Store(cert)
	}
	s.forget(next)
	s.tells.recheck(s.names(), s.upstreams())
	s.connLimits.set(next)
	s.file = next
	s.kept.file.Store(next)
	s.level.Set(next.Log)
	s.watch()
	s.warnRemoved(next)
	s.log.Info("reloaded", "upstreams", len(next.Upstreams))
	return nil
}

// unknown describes for the operator which usage of added upstreams the store has not recorded, or returns "". It waits
// at most one second, since other checks report an unreachable store.
func (s *Server) unknown(next *config.File) string {
	if s.store == nil {
		return ""
	}
	added := &config.File{Store: s.file.Store}
	for _, u := range next.Upstreams {
		if !slices.ContainsFunc(s.file.Upstreams, func(o proxy.Upstream) bool { return o.Name == u.Name }) {
			added.Upstreams = append(added.Upstreams, u)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	m, err := memoryOf(ctx, s.store, added, time.Now())
	if err != nil || len(m.unknown)+len(m.cold)+len(m.exceeds) == 0 {
		return ""
	}
	m.known = nil
	said := strings.TrimPrefix(m.String(), "; ")
	s.log.Warn("reload: store has no usage of added upstreams", "store", said)
	return said
}

// unseen returns an error if the next file needs client certificates on a listener without TLS. A listener gets TLS
// only at a start.
func (s *Server) unseen(next *config.File) error {
	const wants = "%s: client certificates need %s, which needs a restart of weir"
	switch tls := s.file.TLS != nil; {
	case next.Callable.ClientCA != "" && !tls:
		return fmt.Errorf(wants, "client_ca", "tls")
	case next.AdminAccess.ClientCA != "" && !s.file.AdminTLS:
		return fmt.Errorf(wants, "admin_client_ca", "admin_tls")
	case next.Decide != nil && next.Decide.ClientCA != "" && !tls:
		return fmt.Errorf(wants, "decide.client_ca", "tls")
	}
	return nil
}

// disowned returns an error if the owner of queued requests would lose its token. The owner changes only at a start,
// and every message would be refused and become a dead letter.
func (s *Server) disowned(next *config.File) error {
	if s.file.Deliveries == nil || s.file.Deliveries.Requests == nil {
		return nil
	}
	r := s.file.Deliveries.Requests
	switch {
	case r.OwnedBy(next.Callable.Tokens):
		return nil
	case r.Owner == "":
		return errors.New("deliveries.requests.owner: takes effect only after a restart, but with tokens every request needs an owner: restart weir")
	}
	return fmt.Errorf("deliveries.requests.owner: remains %s until a restart, but tokens no longer contains it: keep that token, or restart weir", doc.Quote(r.Owner))
}

// unkept returns an error if upstreams would store requests or first answers without a store of deliveries, which is
// opened only at a start.
func (s *Server) unkept(next *config.File) error {
	if s.file.Deliveries != nil {
		return nil
	}
	var errs []error
	for _, u := range next.Upstreams {
		wants := slices.ContainsFunc(u.Routes, proxy.Route.Stores)
		for _, o := range u.Own {
			wants = wants || o.Over(proxy.Route{}).Stores()
		}
		if wants {
			errs = append(errs, fmt.Errorf("upstreams.%s: deliver and idempotency need deliveries, which are not available until a restart; remove them, or restart weir", u.Name))
		}
	}
	return errors.Join(errs...)
}

// untold returns an error if callbacks would fail, because callbacks change only at a start. Callbacks of an unknown
// name are given up after some time, and those to a removed upstream become dead letters.
func (s *Server) untold(next *config.File) error {
	if s.file.Deliveries == nil {
		return nil
	}
	var errs []error
	for _, u := range next.Upstreams {
		if u.Callback == "" {
			continue
		}
		c, known := s.file.Deliveries.Callbacks[u.Callback]
		bad := func(why string, about ...any) {
			errs = append(errs, fmt.Errorf("upstreams.%s.deliver_callback: "+why, append([]any{u.Name}, about...)...))
		}
		switch named := func(u proxy.Upstream) bool { return u.Name == c.Upstream }; {
		case !known:
			bad("callback %s is not available until a restart; remove it, or restart weir", doc.Quote(u.Callback))
		case !slices.ContainsFunc(next.Upstreams, named):
			bad("%s calls upstream %s until a restart, but the file no longer has that upstream: keep the upstream, or restart weir", doc.Quote(u.Callback), doc.Quote(c.Upstream))
		}
	}
	return errors.Join(errs...)
}

// names returns the names of the file's upstreams, and of the one that counts callers.
func (s *Server) names() []string {
	names := []string{config.CallersName}
	for _, u := range s.file.Upstreams {
		names = append(names, u.Name)
	}
	return names
}

// forget drops the metrics of upstreams that the next file removes.
func (s *Server) forget(next *config.File) {
	var gone []string
	for _, u := range s.file.Upstreams {
		if s.proxy.Upstreams()[u.Name] == nil {
			gone = append(gone, u.Name)
		}
	}
	if s.file.Callers != nil && next.Callers == nil {
		gone = append(gone, config.CallersName)
	}
	for _, name := range gone {
		s.metrics.Forget(name)
		s.proxy.Sockets().Forget(name)
		s.models.metrics.Forget(name)
		s.tells.forget(name)
		if s.shared != nil {
			s.shared.Forget(name)
		}
	}
}

// keep restores the settings in the next file that need a restart, and returns the names of the changed ones.
func (s *Server) keep(next *config.File) (kept []string) {
	for name, changed := range map[string]bool{
		"listen": next.Listen != s.file.Listen, "admin": next.Admin != s.file.Admin || next.AdminTLS != s.file.AdminTLS || next.AdminAll != s.file.AdminAll,
		"tls": (next.TLS == nil) != (s.file.TLS == nil), "max_header": next.MaxHeader != s.file.MaxHeader,
		"log_each_second": next.LogEach != s.file.LogEach, "log_attempts": next.LogAttempts != s.file.LogAttempts,
		"deliveries": !reflect.DeepEqual(next.Deliveries, s.file.Deliveries),
		"store":      !reflect.DeepEqual(next.Store, s.file.Store), "cloudwatch": !reflect.DeepEqual(next.CloudWatch, s.file.CloudWatch),
		"metrics": !reflect.DeepEqual(next.Metrics, s.file.Metrics),
		"traces":  !reflect.DeepEqual(next.Traces, s.file.Traces),
		"notify":  !reflect.DeepEqual(next.Notify, s.file.Notify), "decide": !sameDecide(next.Decide, s.file.Decide),
		"hash_env": next.HashEnv != s.file.HashEnv, "harmless": !slices.Equal(next.Harmless, s.file.Harmless),
		"bounds.streams": streamsOf(next) != streamsOf(s.file), "jobs": !reflect.DeepEqual(next.Jobs, s.file.Jobs),
	} {
		if changed {
			kept = append(kept, name)
		}
	}
	if len(kept) > 0 {
		slices.Sort(kept)
		s.log.Warn("reload: some changes need a restart, the others are applied", "changed", kept)
	}
	next.Listen, next.Admin, next.MaxHeader, next.LogEach, next.LogAttempts = s.file.Listen, s.file.Admin, s.file.MaxHeader, s.file.LogEach, s.file.LogAttempts
	next.AdminTLS, next.AdminAll = s.file.AdminTLS, s.file.AdminAll
	next.HashEnv, next.Harmless = s.file.HashEnv, s.file.Harmless
	next.Deliveries = s.file.Deliveries
	next.Store, next.Decide = s.file.Store, s.file.Decide
	next.CloudWatch, next.Notify, next.Traces, next.Metrics = s.file.CloudWatch, s.file.Notify, s.file.Traces, s.file.Metrics
	next.Bounds.Streams, next.Jobs = s.file.Bounds.Streams, s.file.Jobs
	if (next.TLS == nil) != (s.file.TLS == nil) {
		next.TLS = s.file.TLS
	}
	return kept
}

// streamsOf returns the limit of streams per connection, which a server reads once.
func streamsOf(f *config.File) int { return f.Bounds.WithDefaults(connlimit.Files()).Streams }

// sameDecide reports whether two files have the same settings of decisions, apart from the callers.
func sameDecide(a, b *config.Decide) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Tokens, y.Tokens, x.Rights, y.Rights, x.ClientCA, y.ClientCA = nil, nil, nil, nil, "", ""
	return reflect.DeepEqual(x, y)
}
