package main

import (
	"context"
	"log/slog"
	"time"
)

// A life is the extension from its registration to the end of its sandbox.
type life struct {
	api   *api
	s     *server
	log   *slog.Logger
	hears *listener // nil if Lambda does not report the ends of invocations
}

// live follows Lambda's events. It continues after errors, because an extension that ends makes the function fail.
func live(ctx context.Context, a *api, s *server, log *slog.Logger) error {
	l := &life{api: a, s: s, log: log}
	l.listens(ctx)
	defer l.deaf()
	for wait := firstRest; ; {
		e, err := a.next(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			log.Error("Lambda did not return the next event; asking again", "error", err.Error())
			rest(ctx, wait)
			wait = min(2*wait, longestRest)
			continue
		}
		wait = firstRest
		switch e.Type {
		case invoke:
			l.invoked(ctx, &e)
		case shutdown:
			log.Info("shutdown", "reason", e.Reason)
			s.stop(ctx, e.deadline().Add(-leavingMargin))
			return nil
		}
	}
}

const (
	firstRest     = 50 * time.Millisecond
	longestRest   = time.Second
	leavingMargin = 200 * time.Millisecond
)

// listens subscribes to the ends of invocations. Without them the extension does not flush between invocations, and leased units expire
// with their lease.
func (l *life) listens(ctx context.Context) {
	hears, err := listen(l.s.telemetry)
	if err == nil {
		l.hears = hears
		err = l.api.subscribe(ctx, hears.port())
	}
	if err != nil {
		l.log.Warn("Lambda will not report the end of invocations: units are not returned before a freeze", "error", err.Error())
		l.deaf()
	}
}

// deaf stops listening.
func (l *life) deaf() {
	if l.hears != nil {
		l.hears.close()
		l.hears = nil
	}
}

// invoked waits until an invocation has ended, and then flushes. Lambda freezes the sandbox as soon as the function and all
// extensions have requested the next event.
func (l *life) invoked(ctx context.Context, e *event) {
	l.s.thaw()
	if l.hears == nil {
		return
	}
	if !l.waits(ctx, e) {
		l.log.Warn("Lambda did not report the end of the invocation; no longer waiting for it", "request", e.RequestID)
		l.deaf() // otherwise each invocation would be billed up to its deadline
		return
	}
	l.s.flush(ctx)
}

// waits waits until the invocation has ended. It returns false if Lambda does not report the end before the deadline.
func (l *life) waits(ctx context.Context, e *event) bool {
	timer := time.NewTimer(time.Until(e.deadline()))
	defer timer.Stop()
	for {
		select {
		case id := <-l.hears.done:
			if id == e.RequestID {
				return true
			}
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
