package serve

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/observe/logs"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// watchSockets counts and logs WebSocket connections.
func (s *Server) watchSockets(registry prometheus.Registerer) {
	hub := s.proxy.Sockets()
	hub.Closed, hub.Refused = s.socketClosed, s.socketRefused(logs.Options{EachSecond: s.file.LogEach}.Events(s.log))
	weirprom.Sockets(registry, func(yield func(weirprom.SocketCounts) bool) {
		for c := range hub.Counts {
			if !yield(weirprom.SocketCounts{Upstream: c.Upstream, Open: c.Open.Load(), Most: c.Most.Load(), Messages: c.Messages, Closed: c.Closed}) {
				return
			}
		}
	})
}

// socketRefused returns a function that reports a refused connection like a refused call.
func (s *Server) socketRefused(to weir.Events) func(*websocket.Caller, *weir.Refusal) {
	return func(c *websocket.Caller, r *weir.Refusal) {
		e := weir.Refused{Upstream: r.Upstream, Operation: r.Operation, ID: c.ID, At: clock.System.Now(), Keys: c.Keys, Reason: r.Reason, Key: r.Key, RetryAfter: r.RetryAfter}
		raise := "connections"
		if r.Rule.Scope != "" {
			raise = "connections_by"
		}
		s.kept.Refused(c.ID, e.Subject().Key, r, e.At, "websocket", "too many connections are open: raise "+raise+", or close some")
		to.Refused(e)
		if s.tells.metrics != nil {
			s.tells.metrics.Refused(e.Subject(), r.Reason)
		}
	}
}

// socketClosed logs a closed connection. It omits the subprotocol, because browsers put tokens there.
func (s *Server) socketClosed(c *websocket.Summary) {
	s.log.Info("websocket closed", "upstream", c.Upstream, "id", observe.Redact(c.ID, longestID), "connection", c.Connection, "lasted", c.Lasted.Round(time.Millisecond).String(),
		"to_upstream", c.ToUpstream.Messages, "to_upstream_bytes", c.ToUpstream.Bytes, "to_caller", c.ToCaller.Messages, "to_caller_bytes", c.ToCaller.Bytes,
		"refused", c.Refused, "code", c.Code, "why", observe.Redact(c.Why, longestID))
}

// longestID limits how much of a caller's text is logged.
const longestID = 128
